/**
 * The one form in which Endpoints are stored (L1): each port with the addresses behind it, ports with the same addresses together, an
 * address that is ready here and not ready there not ready, everything sorted. Upstream sorts ports and subsets by a hash; here they go by
 * name and number. Upstream: pkg/api/endpoints RepackSubsets (v1.36).
 */
import type { EndpointAddress, EndpointPort, EndpointSubset, Endpoints } from '#api/gen/types/core.v1'

type Subsets = NonNullable<Endpoints['subsets']>
/** Keys of addresses, and whether they are ready. */
type Behind = Map<string, boolean>

/** The same endpoints in the canonical layout. */
export function repackSubsets(subsets: Subsets): Subsets {
  const addresses = new Map<string, EndpointAddress>()
  const ports = new Map<string, { readonly port: EndpointPort | undefined; readonly behind: Behind }>()
  for (const subset of subsets) {
    // Endpoints without ports are kept, too.
    for (const port of subset.ports?.length ? subset.ports : [undefined]) {
      const behind = at(ports, portKey(port), () => ({ port, behind: new Map() as Behind })).behind
      for (const list of ['addresses', 'notReadyAddresses'] as const) {
        for (const address of subset[list] ?? []) {
          const key = addressKey(address)
          at(addresses, key, () => address)
          behind.set(key, list === 'addresses' && behind.get(key) !== false)
        }
      }
    }
  }
  const groups = new Map<string, { readonly ports: EndpointPort[]; readonly behind: readonly [string, boolean][] }>()
  for (const key of [...ports.keys()].sort()) {
    const { port, behind } = ports.get(key) as { port: EndpointPort | undefined; behind: Behind }
    const sorted = [...behind].sort(([a], [b]) => (a < b ? -1 : 1))
    const group = at(groups, JSON.stringify([sorted, port === undefined]), () => ({ ports: [], behind: sorted }))
    if (port) group.ports.push(port)
  }
  return [...groups.values()].map(({ ports: together, behind }) => subsetOf(together, behind, addresses))
}

function subsetOf(ports: EndpointPort[], behind: readonly [string, boolean][], addresses: ReadonlyMap<string, EndpointAddress>): EndpointSubset {
  const those = (wanted: boolean) => behind.filter(([, ready]) => ready === wanted).map(([key]) => addresses.get(key) as EndpointAddress)
  const [ready, notReady] = [those(true), those(false)]
  return {
    ...(ready.length > 0 ? { addresses: ready } : {}),
    ...(notReady.length > 0 ? { notReadyAddresses: notReady } : {}),
    ...(ports.length > 0 ? { ports } : {}),
  }
}

function at<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const there = map.get(key)
  if (there !== undefined) return there
  const made = make()
  map.set(key, made)
  return made
}

/** Two pods may have had one address. */
function addressKey({ ip, targetRef }: EndpointAddress): string {
  return JSON.stringify([ip, targetRef?.uid ?? ''])
}

function portKey(port: EndpointPort | undefined): string {
  if (!port) return ''
  const { name, port: number, protocol, appProtocol } = port
  return JSON.stringify({ ...(name ? { name } : {}), port: number, protocol, ...(appProtocol ? { appProtocol } : {}) })
}
