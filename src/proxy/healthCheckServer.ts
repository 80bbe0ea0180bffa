/**
 * Serves the health check node ports of a node (L3): a load balancer asks each node for the number of a Service's endpoints there. Everyone who reaches the node
 * reaches these ports: connections are few and short. Upstream: pkg/proxy/healthcheck/service_health.go (v1.36).
 */
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { networkInterfaces } from 'node:os'
import type { Service } from '#api/gen/types/core.v1'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import { hostPort, isIpv6, isLinkLocalUnicast, parseIp } from '#api/machinery/ip'
import type { Frozen } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { messageOf } from '#base/messageOf'
import type { EventRecorder } from '#client/eventRecorder'
import type { ProxyHealth } from './health.ts'
import { isWithin } from './ranges.ts'

export interface HealthCheckDeps {
  readonly clock: Clock
  readonly log: Logger
  readonly events: EventRecorder
  readonly health: Pick<ProxyHealth, 'livez'>
  readonly nodeName: string
}

/** What the ports of a node are made of. */
export interface HealthCheckSources {
  readonly services: readonly Frozen<Service>[]
  readonly slices: readonly Frozen<EndpointSlice>[]
  /** Ranges of local addresses that the ports are opened on. Undefined: every local address. */
  readonly nodePortCidrs: readonly string[] | undefined
}

/** The port of one Service. */
export interface HealthCheck {
  readonly namespace: string
  readonly name: string
  readonly port: number
  /** How many ready endpoints are on this node. */
  readonly localEndpoints: number
  readonly service: Frozen<Service>
}

const serviceNameLabel = 'kubernetes.io/service-name'
/** More than a cluster's range of node ports has by default. */
const mostPorts = 4096
const limits = { ofPort: 32, ofProcess: 512 }
/** For a request, whole. A connection serves one. */
const requestMs = 5000
/** The period in which upstream tries failed ports again. */
const retryMs = 30_000

/** @param services those with a health check node port */
export function healthChecksOf({ services, slices }: HealthCheckSources, nodeName: string): HealthCheck[] {
  const local = new Map<string, Set<string>>()
  for (const { metadata, addressType, endpoints = [], ports = [] } of slices) {
    if (!ports?.some(({ port }) => port)) continue
    const key = `${metadata.namespace}/${metadata.labels?.[serviceNameLabel]} ${addressType}`
    for (const { nodeName: on, conditions, addresses } of endpoints ?? []) {
      if (on !== nodeName || conditions?.ready === false || addresses[0] === undefined) continue
      const there = local.get(key)
      if (there) there.add(addresses[0])
      else local.set(key, new Set([addresses[0]]))
    }
  }
  return services.map((service) => {
    const { namespace = '', name = '' } = service.metadata
    // A pod with addresses of both families is one endpoint.
    const localEndpoints = local.get(`${namespace}/${name} ${service.spec.ipFamilies?.[0] ?? 'IPv4'}`)?.size ?? 0
    return { namespace, name, port: service.spec.healthCheckNodePort ?? 0, localEndpoints, service }
  })
}

/** The addresses to listen on. `undefined` among them: every address of both families. @param local the node's own addresses */
export function hostsOf(ranges: readonly string[] | undefined, local: readonly string[]): readonly (string | undefined)[] {
  if (!ranges) return [undefined]
  const whole = ranges.filter((range) => range.endsWith('/0')).map((range) => (isIpv6(range.slice(0, -2)) ? '::' : '0.0.0.0'))
  const isCovered = (address: string) => whole.includes(isIpv6(address) ? '::' : '0.0.0.0')
  const isUsable = (address: string) => {
    const ip = parseIp(address)
    return ip !== undefined && !isLinkLocalUnicast(ip) && isWithin(ranges, address) && !isCovered(address)
  }
  return [...new Set([...whole, ...local.filter(isUsable)])]
}

/** What a load balancer reads. Status 200 sends traffic to this node, 503 does not. */
export function healthCheckAnswer({ namespace, name, localEndpoints }: HealthCheck, serviceProxyHealthy: boolean) {
  const status = localEndpoints > 0 && serviceProxyHealthy ? 200 : 503
  const headers = {
    'content-type': 'application/json',
    'x-content-type-options': 'nosniff',
    'x-load-balancing-endpoint-weight': String(localEndpoints),
    connection: 'close',
  }
  return { status, headers, body: JSON.stringify({ service: { namespace, name }, localEndpoints, serviceProxyHealthy }, null, '\t') }
}

interface OpenPort {
  check: HealthCheck
  /** Tells the port and its addresses apart from others of the Service. */
  readonly place: string
  readonly servers: readonly Server[]
}

/** @param signal closes all ports @returns `serve` brings the ports to the sources, in the background */
export function createHealthCheckServer(deps: HealthCheckDeps, signal: AbortSignal) {
  const open = new Map<string, OpenPort>()
  /** Service → the place that could not be opened, whose failure has an Event. */
  const failed = new Map<string, string>()
  const listen = createListener(deps)
  let wanted: HealthCheckSources | undefined
  let isWorking = false
  let newest: HealthCheckSources | undefined

  const work = async () => {
    if (isWorking) return
    isWorking = true
    try {
      while (wanted && !signal.aborted) {
        const sources = wanted
        wanted = undefined
        await bring(sources)
      }
    } finally {
      isWorking = false
      if (signal.aborted) await closeAll([...open.values()])
    }
  }
  async function bring(sources: HealthCheckSources): Promise<void> {
    const hosts = hostsOf(sources.nodePortCidrs, localAddresses())
    const checks = new Map(healthChecksOf(sources, deps.nodeName).map((check) => [`${check.namespace}/${check.name}`, check]))
    const placeOf = ({ port }: HealthCheck) => `${port} ${hosts.join()}`
    const isWanted = (key: string, place: string) => {
      const check = checks.get(key)
      return check !== undefined && placeOf(check) === place
    }
    const closing = [...open].filter(([key, { place }]) => !isWanted(key, place))
    for (const [key] of closing) open.delete(key)
    for (const [key, place] of failed) if (!isWanted(key, place)) failed.delete(key)
    await closeAll(closing.map(([, one]) => one))
    for (const [key, check] of checks) {
      const there = open.get(key)
      if (there) there.check = check
      else await openPort(key, check, hosts, placeOf(check))
    }
  }
  async function openPort(key: string, check: HealthCheck, hosts: readonly (string | undefined)[], place: string): Promise<void> {
    const one = { check, place, servers: [] as Server[] }
    try {
      if (open.size >= mostPorts) throw new Error(`the node serves ${mostPorts} health check node ports already`)
      if (hosts.length === 0) throw new Error('the node has no address in the ranges of node ports')
      for (const host of hosts) one.servers.push(await listen(() => one.check, host))
      open.set(key, one)
      failed.delete(key)
    } catch (error) {
      await closeAll([one])
      noteFailure(key, check, place, error)
    }
  }
  function noteFailure(key: string, check: HealthCheck, place: string, error: unknown): void {
    if (failed.get(key) === place) return
    failed.set(key, place)
    const message = `node ${deps.nodeName} failed to start healthcheck "${key}" on port ${check.port}: ${messageOf(error)}`
    deps.log.error(error as Error, 'Failed to start healthcheck', { service: key, port: check.port })
    deps.events.event(check.service, 'Warning', 'FailedToStartServiceHealthcheck', message)
  }

  const serve = (sources: HealthCheckSources) => {
    newest = wanted = sources
    work().catch((error) => deps.log.error(error, 'Health check node ports are not served'))
  }
  const retry = async () => {
    while (!signal.aborted) {
      await deps.clock.sleep(retryMs, signal).catch(() => {})
      if (!signal.aborted && failed.size > 0 && newest) serve(newest)
    }
    // While it works, the work closes them.
    if (!isWorking) await closeAll([...open.values()])
  }
  const ended = retry()
  return { serve, ended }
}

/** Opens a port on one address, within the limits of connections. */
function createListener({ health, log }: HealthCheckDeps) {
  let connections = 0
  return async (check: () => HealthCheck, host: string | undefined): Promise<Server> => {
    const answer: RequestListener = (request, response) => {
      const { status, headers, body } = healthCheckAnswer(check(), health.livez().isHealthy)
      response.writeHead(status, headers).end(request.method === 'HEAD' ? undefined : body)
    }
    const times = { requestTimeout: requestMs, headersTimeout: requestMs, connectionsCheckingInterval: requestMs / 2 }
    const server = createServer({ ...times, maxHeaderSize: 8192 }, answer)
    server.timeout = 2 * requestMs
    server.maxConnections = limits.ofPort
    server.on('connection', (socket) => {
      if (connections >= limits.ofProcess) return socket.destroy()
      connections++
      socket.once('close', () => connections--)
    })
    const { port } = check()
    server.listen({ port, ...(host === undefined ? {} : { host, ipv6Only: isIpv6(host) }) })
    try {
      await once(server, 'listening')
    } catch (error) {
      throw new Error(`listen tcp ${host === undefined ? `:${port}` : hostPort(host, port)}: ${messageOf(error)}`)
    }
    server.on('error', (error) => log.error(error, 'A health check port does not take a connection', { port }))
    return server
  }
}

async function closeAll(ports: readonly OpenPort[]): Promise<void> {
  const closed = ports.flatMap(({ servers }) => servers.map((server) => new Promise((resolve) => server.close(resolve))))
  for (const { servers } of ports) for (const server of servers) server.closeAllConnections()
  await Promise.all(closed)
}

function localAddresses(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address))
}
