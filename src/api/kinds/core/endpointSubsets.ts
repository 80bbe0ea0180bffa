/**
 * The one form in which Endpoints are stored (L1): each port with the addresses behind it, ports with the same addresses together, an
 * address that is ready here and not ready there not ready, everything sorted. Upstream sorts ports and subsets by a hash; here they go by
 * name and number. Upstream: pkg/api/endpoints RepackSubsets (v1.36).
 */
import type { EndpointAddress, EndpointPort, EndpointSubset, Endpoints } from '#api/gen/types/core.v1'

type Subsets = NonNullable<Endpoints['subsets']>
/** Addresses by key, with their readiness. The ports of one subset share this map until another subset has one of the ports. */
type Behind = ReadonlyMap<string, boolean>

interface Port {
  readonly port: EndpointPort | undefined
  readonly behind: Behind
}

/** The same endpoints in the canonical layout. */
export function repackSubsets(subsets: Subsets): Subsets {
  const addresses = new Map<string, EndpointAddress>()
  const ports = new Map<string, Port>()
  for (const subset of subsets) {
    const behind = addressesOf(subset, addresses)
    // Endpoints without ports are kept, too.
    for (const port of subset.ports?.length ? subset.ports : [undefined]) {
      const key = portKey(port)
      const there = ports.get(key)
      ports.set(key, there ? { port: there.port, behind: merged(there.behind, behind) } : { port, behind })
    }
  }
  const sorted = new Map<Behind, Sorted>()
  const groups = new Map<string, { readonly ports: EndpointPort[]; readonly rows: Rows }>()
  for (const key of [...ports.keys()].sort()) {
    const { port, behind } = ports.get(key) as Port
    const { rows, text } = at(sorted, behind, () => sortedRows(behind))
    const group = at(groups, `${port === undefined} ${text}`, () => ({ ports: [], rows }))
    if (port) group.ports.push(port)
  }
  return [...groups.values()].map(({ ports: together, rows }) => subsetOf(together, rows, addresses))
}

type Rows = readonly (readonly [string, boolean])[]

interface Sorted {
  readonly rows: Rows
  /** Equal for equal rows. */
  readonly text: string
}

function sortedRows(behind: Behind): Sorted {
  const rows = [...behind].sort(([a], [b]) => (a < b ? -1 : 1))
  return { rows, text: JSON.stringify(rows) }
}

/** Notes the addresses by their keys. */
function addressesOf(subset: EndpointSubset, addresses: Map<string, EndpointAddress>): Behind {
  const behind = new Map<string, boolean>()
  for (const list of ['addresses', 'notReadyAddresses'] as const) {
    for (const address of subset[list] ?? []) {
      const key = addressKey(address)
      at(addresses, key, () => address)
      behind.set(key, list === 'addresses' && behind.get(key) !== false)
    }
  }
  return behind
}

/** An address is ready only if it is ready in both. */
function merged(a: Behind, b: Behind): Behind {
  const both = new Map(a)
  for (const [key, ready] of b) both.set(key, ready && both.get(key) !== false)
  return both
}

function subsetOf(ports: EndpointPort[], rows: Rows, addresses: ReadonlyMap<string, EndpointAddress>): EndpointSubset {
  const those = (wanted: boolean) => rows.filter(([, ready]) => ready === wanted).map(([key]) => addresses.get(key) as EndpointAddress)
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
