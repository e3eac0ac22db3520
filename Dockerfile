# The CPU image, with both commands inside; the GPU needs none, `pip install .` takes your torch.
#
#     docker build -t sfo .
#     docker run --rm -v "$PWD/runs:/sfo/runs" sfo               # make demo; the page is in runs/demo
#     docker run --rm sfo make test
#     docker run --rm -v "$PWD:/data" -w /data sfo sfo train --data mine.npz --out runs/mine
FROM python:3.12-slim

# chromium is for the tests that open pages in a browser.
RUN apt-get update \
    && apt-get install -y --no-install-recommends make git chromium \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /sfo
COPY . .

# torch without CUDA first: `make` then finds it installed.
RUN pip install --no-cache-dir uv \
    && python -m venv .venv \
    && uv pip install --no-cache --python .venv/bin/python --torch-backend cpu -r constraints.txt \
    && make .venv/.dev

ENV PATH="/sfo/.venv/bin:$PATH" MPLBACKEND=Agg
CMD ["make", "demo"]
