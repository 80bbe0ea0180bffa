/** The loop of every route mode (L3): applies the wanted routes of each family after a change, again within ten seconds, and every second after a failure. */
import { isIpv6 } from '#api/machinery/ip'
import type { Route } from '../podNetwork.ts'
import type { RouteModeDeps, WantedRoutes } from './routeMode.ts'

const retryMs = 1000
/** A removed route is not reported to this process; check as often as flannel does in its host-gw mode. */
const resyncMs = 10_000

/** As ip(8) has them. */
export const familyFlags = ['-4', '-6'] as const
export type FamilyFlag = (typeof familyFlags)[number]
/** @param text an address or range */
export const familyFlagOf = (text: string): FamilyFlag => (isIpv6(text) ? '-6' : '-4')

/** Brings the kernel's routes of a family to those wanted. @returns the changes made */
export type ChangeRoutes = (family: FamilyFlag, wanted: readonly Route[]) => Promise<readonly string[]>

/** Until the signal aborts. */
export async function keepRoutes(deps: RouteModeDeps, wanted: WantedRoutes, change: ChangeRoutes, signal: AbortSignal): Promise<void> {
  try {
    await wanted.next(signal)
    while (!signal.aborted) {
      if (await applyRoutes(deps, wanted.newest(), change)) await wanted.next(signal, resyncMs)
      else await deps.clock.sleep(retryMs, signal)
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

/** A family that fails does not hold up the other. @returns whether both are as wanted */
async function applyRoutes({ log }: RouteModeDeps, wanted: readonly Route[], change: ChangeRoutes): Promise<boolean> {
  let isDone = true
  for (const family of familyFlags) {
    try {
      const ofFamily = wanted.filter(({ cidr }) => familyFlagOf(cidr) === family)
      const commands = await change(family, ofFamily)
      if (commands.length > 0) log.v(2).info('Changed the routes to other nodes', { commands })
    } catch (error) {
      log.error(error, 'Failed to set the routes to other nodes')
      isDone = false
    }
  }
  return isDone
}
