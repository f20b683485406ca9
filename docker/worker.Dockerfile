# A Beam worker that can run every stage, on processors or on NVIDIA GPUs:
#     docker build -f docker/worker.Dockerfile -t REGISTRY/adit-worker .
#     docker build -f docker/worker.Dockerfile -t REGISTRY/adit-worker:cuda \
#         --build-arg EXTRAS=beam,gpu,laser \
#         --build-arg TORCH_INDEX=https://pypi.org/simple .
# One of the extras faiss and gpu, never both: they install the same module.
# The versions of Python and Beam have to be those of the machine that submits the job.
ARG PYTHON=3.11
ARG BEAM=2.77.0
FROM apache/beam_python${PYTHON}_sdk:${BEAM}

ARG EXTRAS=beam,faiss,laser
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
WORKDIR /opt/adit
COPY . .
RUN pip install --no-cache-dir --index-url "$TORCH_INDEX" --extra-index-url https://pypi.org/simple \
        --constraint constraints.txt ".[$EXTRAS]" \
    && python -c "import pipelines.run.beam, miner.knn.exact, faiss, torch; from encoder import load_encoder; load_encoder()"
