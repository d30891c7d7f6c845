# One image, two stages: the second has no package index and no compiler, and writes to /tmp only.
FROM python:3.11-slim AS build
RUN python -m venv /opt/rung
WORKDIR /build
COPY requirements.lock ./
RUN /opt/rung/bin/pip install --no-cache-dir --require-hashes --requirement requirements.lock
COPY setup.cfg pyproject.toml README.md LICENSE ./
COPY evidence evidence
COPY renderers renderers
COPY service service
RUN /opt/rung/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.11-slim
COPY --from=build /opt/rung /opt/rung
WORKDIR /srv/rung
COPY wsgi.py gunicorn.conf.py ./
RUN mkdir /data && chown 10001:10001 /data
ENV PATH=/opt/rung/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 RUNG_STORE=/data/rung.db
USER 10001:10001
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
  CMD ["python", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ.get('PORT', '8000') + '/readyz', timeout=4)"]
CMD ["gunicorn", "wsgi:app"]
