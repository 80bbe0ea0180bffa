/**
 * The kubelets that run in this process, by node (L5). The API server connects to a loopback port for one of these only: the status of a Node can
 * be patched, and could name any port of this host.
 */
export interface OwnKubelet {
  /** What the node's status names. */
  readonly address: string
  readonly port: number
  /** The loopback address on which it listens. */
  readonly listensOn: string
}

export interface OwnKubelets {
  add(nodeName: string, kubelet: OwnKubelet): void
  /** Where the kubelet of that node listens, if its status names what the kubelet publishes. */
  listenAddress(nodeName: string, address: string, port: number): string | undefined
}

export function createOwnKubelets(): OwnKubelets {
  const kubelets = new Map<string, OwnKubelet>()
  return {
    add: (nodeName, kubelet) => void kubelets.set(nodeName, kubelet),
    listenAddress: (nodeName, address, port) => {
      const own = kubelets.get(nodeName)
      return own?.address === address && own.port === port ? own.listensOn : undefined
    },
  }
}
