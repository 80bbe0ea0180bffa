/**
 * The kubelets that run in this process, by node (L5). The API server goes to a loopback address for one of these only: the status of a Node can
 * be patched, and could name any port of this host.
 */
export interface OwnKubelets {
  add(nodeName: string, address: string, port: number): void
  has(nodeName: string, address: string, port: number): boolean
}

export function createOwnKubelets(): OwnKubelets {
  const places = new Map<string, string>()
  const placeOf = (address: string, port: number) => `${address} ${port}`
  return {
    add: (nodeName, address, port) => void places.set(nodeName, placeOf(address, port)),
    has: (nodeName, address, port) => places.get(nodeName) === placeOf(address, port),
  }
}
