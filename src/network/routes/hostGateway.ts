/**
 * Routes through the nodes' own addresses (L3): the kernel has a route per range of pods, whose gateway is the node of these pods. All nodes must be on one
 * link. Upstream's counterpart: flannel's host-gw backend.
 */
import { check, type Exec } from '#host/exec'
import type { Route } from '../podNetwork.ts'
import { type FamilyFlag, familyFlags, keepRoutes } from './keepRoutes.ts'
import type { RouteMode } from './routeMode.ts'

/** Marks our routes in the kernel's table, so that a later run finds them and leaves others alone. Not registered to any program. */
export const routeProtocol = 107

export const hostGateway: RouteMode = {
  name: 'host-gw',
  run: (deps, wanted, signal) => keepRoutes(deps, wanted, (family, routes) => changeRoutes(deps.exec, family, routes), signal),
  cleanUp: async (exec) => {
    for (const family of familyFlags) await changeRoutes(exec, family, [])
  },
}

/** Compares with the kernel's own table: routes vanish when a link goes down, and an earlier run may have left some. @returns the changes made */
async function changeRoutes(exec: Exec, family: FamilyFlag, wanted: readonly Route[]): Promise<string[]> {
  const shown = await exec.run('ip', [family, '-json', 'route', 'show', 'proto', String(routeProtocol)])
  // A kernel without the family has no routes of it.
  if (shown.code !== 0 && wanted.length === 0 && family === '-6') return []
  if (shown.code !== 0) throw new Error(`ip ${family} route show: ${shown.stderr.trim()}`)
  const commands = routeChanges(parseRoutes(shown.stdout), wanted)
  if (commands.length > 0) await check(exec, 'ip', [family, '-force', '-batch', '-'], { input: `${commands.join('\n')}\n` })
  return commands
}

/** Reads the output of `ip -json route show`. */
function parseRoutes(json: string): Route[] {
  const shown = JSON.parse(json || '[]') as { dst: string; gateway?: string }[]
  return shown.map(({ dst, gateway = '' }) => ({ cidr: dst, via: gateway }))
}

/** Commands for `ip -batch` that lead from one set of routes to the other. */
export function routeChanges(before: readonly Route[], wanted: readonly Route[]): string[] {
  const now = new Map(wanted.map((route) => [route.cidr, route.via]))
  const then = new Map(before.map((route) => [route.cidr, route.via]))
  return [
    ...before.filter((route) => !now.has(route.cidr)).map((route) => `route del ${route.cidr} proto ${routeProtocol}`),
    ...wanted.filter((route) => then.get(route.cidr) !== route.via).map((route) => `route replace ${route.cidr} via ${route.via} proto ${routeProtocol}`),
  ]
}
