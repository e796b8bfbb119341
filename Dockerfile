# Serves a run that is mounted at /run-folder, on a CPU, without torch:
#   docker build -t emhrnn .
#   docker run -p 8000:8000 -e EMHRNN_TOKEN="$(openssl rand -hex 16)" -v "$PWD/run:/run-folder:ro" emhrnn
# Without a mounted run: docker run ... emhrnn demo
FROM python:3.13-slim-bookworm AS build
# Debian removes old versions, so that a pinned one could not be installed for long.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY pyproject.toml hatch_build.py README.md LICENSE CHANGELOG.md CITATION.cff SECURITY.md ./
COPY src ./src
RUN python -m pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13-slim-bookworm
COPY --from=build /wheels /wheels
COPY requirements.lock /wheels/
RUN python -m pip install --no-cache-dir --require-hashes -r /wheels/requirements.lock \
    && python -m pip install --no-cache-dir --no-deps /wheels/*.whl \
    && rm -r /wheels \
    && useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin emhrnn
USER 10001
ENV PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["emhrnn", "serve", "--host", "0.0.0.0", "--port", "8000"]
CMD ["/run-folder"]
