/**
 * Shows a driver to the kubelet (L2), which watches plugins_registry for sockets of this service. The driver is registered until its socket there is removed.
 * Upstream: kubernetes-csi/node-driver-registrar.
 */
import { pluginRegistrationProto } from '#grpc/proto/pluginRegistration'
import { serveUnix, type UnixServer } from '#grpc/unixServer'

export interface Registration {
  readonly name: string
  /** The path of the driver's socket, as the kubelet sees it. */
  readonly endpoint: string
  readonly versions: readonly string[]
}

/** @param onStatus gets what the kubelet says: '' when the driver is registered */
export function serveRegistration(socket: string, { name, endpoint, versions }: Registration, onStatus: (error: string) => void): Promise<UnixServer> {
  const methods = {
    GetInfo: () => ({ type: 'CSIPlugin', name, endpoint, supportedVersions: versions }),
    NotifyRegistrationStatus: ({ error }: { readonly error: string }) => {
      onStatus(error)
      return {}
    },
  }
  return serveUnix(socket, [{ proto: pluginRegistrationProto, service: 'pluginregistration.Registration', methods }])
}
