/**
 * The addresses that the `kubernetes` service leads to when servers are counted (L3, pure), and which ports it has.
 * Upstream: pkg/controlplane/reconcilers/{instancecount,lease}.go (v1.36).
 */
import type { Endpoints } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'

/** None when the object is not of the form that servers write: one subset. */
export function addressesOf(endpoints: Frozen<Endpoints> | undefined): readonly string[] {
  const { subsets = [] } = endpoints ?? {}
  return subsets.length === 1 ? (subsets[0]?.addresses ?? []).map(({ ip }) => ip) : []
}

/** Adds the server's own address. Of more than `count` addresses, those after it go, and then those at the beginning. */
export function withOwnAddress(addresses: readonly string[], own: string, count: number): readonly string[] {
  if (addresses.includes(own) && addresses.length <= count) return addresses
  const left = [...new Set([...addresses, own])].sort()
  while (left.length > count) left.splice((left.indexOf(own) + 1) % left.length, 1)
  return left
}

/** The port that is written already, unless this server decides. */
export function endpointPort(endpoints: Frozen<Endpoints> | undefined, own: number, decides: boolean): number {
  const written = endpoints?.subsets?.length === 1 ? endpoints.subsets[0]?.ports?.[0]?.port : undefined
  return decides ? own : (written ?? own)
}
