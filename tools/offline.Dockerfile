# Builds images where no registry can be reached: `make docker-build OFFLINE=1` in a stage builds the program
# on this machine, and passes it and this machine's CA certificates as the build context. No image is pulled.
FROM scratch
# Go looks for CA certificates here.
COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY manager /manager
ARG TITLE
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title=${TITLE} \
      org.opencontainers.image.version=${VERSION} \
      org.opencontainers.image.revision=${REVISION}
# A number, because there is no /etc/passwd with names.
USER 65532:65532
ENTRYPOINT ["/manager"]
