/** Listens on the addresses of Services and forwards their connections (L3). Nodes of other modes do not load it. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { isIpv6 } from '#api/machinery/ip'
import { deadlineScope } from '#base/abortScope'
import { messageOf } from '#base/messageOf'
import type { Forwarder, ForwardTarget, TargetOrder } from '#host/forwarding/forwarder'
import { createTcpForwarding } from '#host/forwarding/tcpForwarding'
import { createUdpForwarding } from '#host/forwarding/udpForwarding'
import { applyModels, retryMs } from '../../applyModels.ts'
import type { Family, FamilyModel, ProxyModels, ServiceRule } from '../../model.ts'
import { isWithin } from '../../ranges.ts'
import type { ProxyModeDeps } from '../mode.ts'

/** Many for a node, and few enough to leave the process descriptors for its other work. */
const limits = { connections: { ofListener: 512, ofProcess: 4096 }, flows: { ofListener: 256, ofProcess: 2048 } }
/** Clients whose endpoint is remembered for a Service. */
const maxSticky = 4096

/** @param routeProtocol marks our routes */
export async function serveInUserspace(deps: ProxyModeDeps, models: ProxyModels, routeProtocol: number, signal: AbortSignal): Promise<void> {
  const listeners = createListeners(deps)
  const routes = createLocalRoutes(deps, routeProtocol)
  try {
    await applyModels(
      async (model) => {
        await routes.apply(model)
        await listeners.apply(model)
      },
      // The forwarder ends its flows itself, and without rights the process cannot change the kernel's table.
      { ...deps, conntrack: { delete: async () => 0 } },
      againWhile(() => routes.isIncomplete() || listeners.isIncomplete(), models, deps.clock),
      signal,
    )
  } finally {
    listeners.close()
  }
}

/** The models, and after a back-off the newest one again while the last could be served in part only: an administrator may have acted meanwhile. */
function againWhile(isIncomplete: () => boolean, models: ProxyModels, clock: ProxyModeDeps['clock']): ProxyModels {
  let attempts = 0
  return {
    newest: models.newest,
    next: async (signal) => {
      if (!isIncomplete()) {
        attempts = 0
        return models.next(signal)
      }
      const ms = Math.min(retryMs.max, retryMs.initial * 2 ** attempts++)
      using wait = deadlineScope({ clock, ms }, signal)
      try {
        return await models.next(wait.signal)
      } catch (error) {
        if (signal.aborted || !wait.signal.aborted) throw error
        return models.newest()
      }
    },
  }
}

/** Routes cluster IPs to this host and allows binding addresses no interface has. Without CAP_NET_ADMIN, the log names the commands for the administrator. */
function createLocalRoutes({ exec, log }: ProxyModeDeps, routeProtocol: number) {
  /** By range. False: a command failed, which is logged once. */
  const routed: Record<Family, Map<string, boolean>> = { IPv4: new Map(), IPv6: new Map() }

  async function route(range: string, family: Family): Promise<void> {
    const ofIpv6 = family === 'IPv6'
    const words = ['route', 'replace', 'local', range, 'dev', 'lo', 'proto', String(routeProtocol)]
    const commands = [['ip', ofIpv6 ? '-6' : '-4', ...words], ...(ofIpv6 ? [['sysctl', '-w', 'net.ipv6.ip_nonlocal_bind=1']] : [])]
    const isReported = routed[family].has(range)
    routed[family].set(range, true)
    for (const [program = '', ...args] of commands) {
      const { code, stderr } = await exec.run(program, args)
      if (code === 0) continue
      routed[family].set(range, false)
      if (!isReported) log.info('Cluster IPs are served once they are local', { run: [program, ...args].join(' '), reason: stderr.trim() })
    }
  }

  return {
    apply: async ({ serviceCidrs, family }: FamilyModel) => {
      const there = routed[family]
      for (const range of there.keys()) if (!serviceCidrs.includes(range)) there.delete(range)
      for (const range of serviceCidrs) if (!there.get(range)) await route(range, family)
    },
    isIncomplete: () => Object.values(routed).some((ranges) => [...ranges.values()].includes(false)),
  }
}

/** What is listened on, and where its connections go. */
interface Wanted {
  readonly address: string
  readonly port: number
  readonly protocol: 'tcp' | 'udp'
  readonly targets: readonly ForwardTarget[]
  readonly sourceRanges: readonly string[] | undefined
  readonly affinitySeconds: number | undefined
}

/**
 * By protocol, address and port. If two Services have the same, the first is served. Nothing listens where there is no endpoint, so that the kernel refuses
 * connections, as the rules of other modes do.
 */
export function wantedListeners({ family, rules }: FamilyModel): ReadonlyMap<string, Wanted> {
  const wanted = new Map<string, Wanted>()
  for (const rule of rules) {
    for (const one of listenersOf(rule, family)) {
      const key = `${one.protocol} ${one.address} ${one.port}`
      if (!wanted.has(key)) wanted.set(key, one)
    }
  }
  return new Map([...wanted].filter(([, { targets }]) => targets.length > 0))
}

function listenersOf(rule: ServiceRule, family: Family): Wanted[] {
  const { protocol, affinitySeconds } = rule
  // Node has no sockets of SCTP.
  if (protocol === 'sctp') return []
  const targetsOf = (isLocal: boolean) => (isLocal ? rule.localEndpoints : rule.clusterEndpoints).map(({ ip, port }) => ({ address: ip, port }))
  const external = targetsOf(rule.externalPolicyLocal)
  const common = { protocol, affinitySeconds, sourceRanges: undefined }
  const anywhere = family === 'IPv6' ? '::' : '0.0.0.0'
  return [
    { ...common, address: rule.clusterIp, port: rule.port, targets: targetsOf(rule.internalPolicyLocal) },
    ...rule.externalIps.map((address) => ({
      ...common,
      address,
      port: rule.port,
      targets: external,
      sourceRanges: rule.loadBalancerIps.includes(address) ? rule.sourceRanges : undefined,
    })),
    ...(rule.nodePort === undefined ? [] : [{ ...common, address: anywhere, port: rule.nodePort, targets: external }]),
  ]
}

interface Listener {
  wanted: Wanted
  readonly forwarder: Forwarder
}

function createListeners({ clock, log }: ProxyModeDeps) {
  const tcp = createTcpForwarding(clock, limits.connections)
  const udp = createUdpForwarding(clock, limits.flows)
  const listeners: Record<Family, Map<string, Listener>> = { IPv4: new Map(), IPv6: new Map() }
  /** Listeners that could not bind; each is logged once, until it is served or its Service is gone. */
  const unserved: Record<Family, Set<string>> = { IPv4: new Set(), IPv6: new Set() }

  async function open(key: string, wanted: Wanted, reported: Set<string>): Promise<Listener | undefined> {
    try {
      const listener: { wanted: Wanted } = { wanted }
      const order = orderOf(() => listener.wanted, clock)
      const forwarder =
        wanted.protocol === 'tcp'
          ? tcp.serve(await boundServer(wanted), wanted.targets, order)
          : udp.serve(await boundSocket(wanted), wanted.targets, { order, keep: 'any' })
      reported.delete(key)
      return Object.assign(listener, { forwarder })
    } catch (error) {
      if (!reported.has(key)) log.warn('An address of a Service is not served', { listener: key, reason: messageOf(error) })
      reported.add(key)
      return undefined
    }
  }

  return {
    apply: async (model: FamilyModel) => {
      const there = listeners[model.family]
      const wanted = wantedListeners(model)
      for (const [key, { forwarder }] of there) {
        if (wanted.has(key)) continue
        forwarder.close()
        there.delete(key)
      }
      const reported = unserved[model.family]
      for (const key of reported) if (!wanted.has(key)) reported.delete(key)
      for (const [key, one] of wanted) {
        const listener = there.get(key) ?? (await open(key, one, reported))
        if (!listener) continue
        listener.wanted = one
        listener.forwarder.setTargets(one.targets)
        there.set(key, listener)
      }
    },
    isIncomplete: () => unserved.IPv4.size + unserved.IPv6.size > 0,
    close: () => {
      for (const { forwarder } of Object.values(listeners).flatMap((one) => [...one.values()])) forwarder.close()
    },
  }
}

/** Round robin; with affinity, the client's last endpoint first. */
function orderOf(wanted: () => Wanted, clock: ProxyModeDeps['clock']): TargetOrder {
  const sticky = new Map<string, { readonly target: ForwardTarget; readonly untilMs: number }>()
  let turn = 0
  return (targets, client) => {
    const { sourceRanges, affinitySeconds } = wanted()
    if (targets.length === 0 || (sourceRanges && !isWithin(sourceRanges, client))) return []
    const first = turn++ % targets.length
    const inTurn = [...targets.slice(first), ...targets.slice(0, first)]
    if (affinitySeconds === undefined) return inTurn
    const before = sticky.get(client)
    const kept = before && before.untilMs > clock.monotonicMs() ? targets.find((one) => isSame(one, before.target)) : undefined
    const target = kept ?? (inTurn[0] as ForwardTarget)
    sticky.delete(client)
    sticky.set(client, { target, untilMs: clock.monotonicMs() + affinitySeconds * 1000 })
    const oldest = sticky.keys().next().value
    if (sticky.size > maxSticky && oldest !== undefined) sticky.delete(oldest)
    return [target, ...inTurn.filter((one) => !isSame(one, target))]
  }
}

const isSame = (a: ForwardTarget, b: ForwardTarget) => a.address === b.address && a.port === b.port

/** The listener takes its connections over. */
async function boundServer({ address, port }: Wanted): Promise<Server> {
  const server = createServer()
  server.listen({ host: address, port, ipv6Only: isIpv6(address) })
  await once(server, 'listening')
  return server
}

async function boundSocket({ address, port }: Wanted): Promise<Socket> {
  const socket = createSocket({ type: isIpv6(address) ? 'udp6' : 'udp4', ipv6Only: isIpv6(address) })
  try {
    socket.bind({ address, port })
    await once(socket, 'listening')
    return socket
  } catch (error) {
    socket.close()
    throw error
  }
}
