/** What the registration of a CSI driver needs (L3), loaded with the first one: a node without drivers keeps none of it in memory. */
export { csiProto } from '#grpc/proto/csi'
export { installDriver, uninstallDriver } from './driverInstallation.ts'
export { observedCalls } from './observedCalls.ts'
export { compareVersions, highestVersion } from './versions.ts'
