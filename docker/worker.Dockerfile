# A Beam worker that can run every stage: on processors, or on NVIDIA GPUs.
#     docker build -f docker/worker.Dockerfile -t REGISTRY/adit-worker .
#     docker build -f docker/worker.Dockerfile -t REGISTRY/adit-worker:cuda \
#         --build-arg TORCH_INDEX=https://download.pytorch.org/whl/cu126 .
# The versions of Python and Beam have to be those of the machine that submits the job.
ARG PYTHON=3.11
ARG BEAM=2.77.0
FROM apache/beam_python${PYTHON}_sdk:${BEAM}

ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
WORKDIR /opt/adit
COPY . .
RUN pip install --no-cache-dir --extra-index-url "$TORCH_INDEX" --constraint constraints.txt . \
    && python -c "import pipelines.graph, miner.knn.exact, faiss, torch; from encoder import load_encoder; load_encoder()"
