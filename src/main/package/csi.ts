/** What the package publishes as skiff-kubernetes/csi (L5): the library under CSI drivers. docs/csi.md shows it at work. */
export * from '#csi/server/csiTypes'
export { serveCsi } from '#csi/server/serveCsi'
export type { StatusName } from '#grpc/grpcError'
export type { UnixServer } from '#grpc/unixServer'
