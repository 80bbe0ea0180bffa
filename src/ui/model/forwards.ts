/** The ports of a pod or a Service, and the commands that forward them (L4, pure). The page forwards none itself: what answers there would run in the name of the page. */

interface Port {
  readonly name?: string
  readonly protocol?: string
}

export interface ForwardedObject {
  readonly metadata: { readonly namespace?: string; readonly name?: string }
  readonly spec?: {
    readonly type?: unknown
    readonly containers?: readonly { readonly name: string; readonly ports?: readonly (Port & { readonly containerPort: number })[] }[]
    readonly ports?: unknown
  }
}

export interface Forward {
  readonly port: number
  readonly protocol: string
  /** The name of the port, or of its container. */
  readonly name: string
  /** Undefined: kubectl forwards TCP alone. */
  readonly command: string | undefined
}

/** Ports below it need a privilege on many machines. */
const firstFree = 1024

/** @param resource of the core group */
export function forwardsOf(resource: string, { metadata, spec }: ForwardedObject): Forward[] {
  const { namespace = 'default', name: object = '' } = metadata
  const forward = (port: number, { protocol = 'TCP' }: Port, name: string): Forward => {
    const local = port < firstFree ? 8000 + port : port
    const isPossible = protocol === 'TCP' && spec?.type !== 'ExternalName'
    return { port, protocol, name, command: isPossible ? `kubectl port-forward -n ${namespace} ${resource}/${object} ${local}:${port}` : undefined }
  }
  if (resource === 'pods')
    return (spec?.containers ?? []).flatMap(({ name, ports = [] }) => ports.map((port) => forward(port.containerPort, port, port.name ?? name)))
  if (resource !== 'services' || !Array.isArray(spec?.ports)) return []
  return (spec.ports as readonly (Port & { readonly port: number })[]).map((port) => forward(port.port, port, port.name ?? ''))
}
