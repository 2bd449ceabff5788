# Images for where no registry can be reached: `make docker-build OFFLINE=1` in a stage builds the program
# on this machine, and hands it and this machine's CA certificates over as the context. Nothing is pulled.
FROM scratch
# Where Go looks for them.
COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY manager /manager
ARG TITLE
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title=${TITLE} \
      org.opencontainers.image.version=${VERSION} \
      org.opencontainers.image.revision=${REVISION}
# By number, for there is no /etc/passwd that could tell a name.
USER 65532:65532
ENTRYPOINT ["/manager"]
