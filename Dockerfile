# One image of one layer, without pip, setuptools, compilers and bytecode. It writes to /tmp and /data.
ARG BASE=docker.io/library/python:3.11-slim
FROM ${BASE} AS build
# Names of files in locks/, such as "documents semantic": more of what Rung can read and do.
ARG EXTRAS=
RUN python3 -m venv /opt/rung
WORKDIR /build
COPY requirements.lock ./
COPY locks locks
RUN for lock in requirements.lock $(for extra in $EXTRAS; do echo locks/$extra.lock; done); do \
      /opt/rung/bin/pip install --no-cache-dir --require-hashes --requirement $lock || exit 1; \
    done
COPY setup.cfg pyproject.toml README.md LICENSE ./
COPY evidence evidence
COPY renderers renderers
COPY service service
RUN /opt/rung/bin/pip install --no-cache-dir --no-deps --no-build-isolation . \
 && /opt/rung/bin/pip uninstall --yes setuptools pip \
 && find /opt/rung -name __pycache__ -prune -exec rm -rf {} +

FROM ${BASE} AS system
RUN rm -rf /usr/local/lib/python3*/site-packages/* /usr/local/lib/python3*/ensurepip /usr/local/bin/pip* \
      /usr/lib/python3/dist-packages/* /usr/share/python-wheels /usr/share/doc /usr/share/man \
      /usr/share/locale /var/lib/apt/lists /var/cache/apt /var/log/* \
 && find / -xdev -name __pycache__ -prune -exec rm -rf {} +

FROM scratch
COPY --from=system / /
COPY --from=build /opt/rung /opt/rung
WORKDIR /srv/rung
COPY wsgi.py gunicorn.conf.py ./
# Any user can write to a new volume; files of a store are readable by their user alone.
RUN mkdir -p /data && chmod 1777 /data
ENV PATH=/opt/rung/bin:/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 \
    PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 RUNG_STORE=/data/rung.db
USER 10001:10001
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
  CMD ["python", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ.get('PORT', '8000') + '/readyz', timeout=4)"]
CMD ["gunicorn", "wsgi:app"]
