# A Beam worker that can run every stage, on processors or on NVIDIA GPUs:
#     docker build -f docker/worker.Dockerfile -t REGISTRY/adit-worker .      (as `make image` does)
#     docker build -f docker/worker.Dockerfile -t REGISTRY/adit-worker:cuda \
#         --build-arg EXTRAS=beam,gpu,laser \
#         --build-arg TORCH_INDEX=https://pypi.org/simple .
# One of the extras faiss and gpu, never both: they install the same module.
# The versions of Python and Beam have to be those of the machine that submits the job. BASE may be an
# image of your own, with Beam's program /opt/apache/beam/boot as its entry point.
ARG PYTHON=3.11
ARG BEAM=2.77.0
ARG BASE=docker.io/apache/beam_python${PYTHON}_sdk:${BEAM}
FROM ${BASE}

ARG EXTRAS=beam,faiss,laser
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
COPY . /opt/adit
RUN pip install --no-cache-dir --index-url "$TORCH_INDEX" --extra-index-url https://pypi.org/simple \
        --constraint /opt/adit/constraints.txt "/opt/adit[$EXTRAS]" \
    && python -c "from importlib import import_module, util; \
import pipelines.run.beam, miner.knn.exact, encoder; \
encoder.load_encoder(); \
[import_module(name) for name in ('faiss', 'torch') if util.find_spec(name)]"
