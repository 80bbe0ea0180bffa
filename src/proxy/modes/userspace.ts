/**
 * The userspace mode (L3): this process listens on the addresses of Services and forwards each connection to an endpoint. It needs only the right to bind: without
 * CAP_NET_ADMIN it serves the addresses that the host has already, such as those of node ports, and cluster IPs once an administrator has made them local. Endpoints
 * see the node's address. Upstream had such a mode until v1.25 (pkg/proxy/userspace).
 */
import type { ProxyMode } from './mode.ts'

/** Marks our routes. */
const routeProtocol = 109

export const userspace: ProxyMode = {
  name: 'userspace',
  obstacle: async () => undefined,
  run: async (deps, models, signal) => {
    const { serveInUserspace } = await import('./userspace/serve.ts')
    await serveInUserspace(deps, models, routeProtocol, signal)
  },
  cleanUp: async (exec) => {
    for (const family of ['-4', '-6']) await exec.run('ip', [family, 'route', 'flush', 'table', 'local', 'proto', String(routeProtocol)])
  },
}
