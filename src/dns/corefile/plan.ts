/**
 * Decides what a Corefile asks for (L3): the plugins of each server with their settings. A plugin or option that is not served is refused by its name. Pure.
 * Upstream: CoreDNS, the plugins that kubeadm's Corefile has, with hosts, rewrite and log.
 */
import net from 'node:net'
import type { CacheOptions } from '../plugins/cache.ts'
import { addressOf, type ForwardOptions } from '../plugins/forward.ts'
import type { HostsOptions } from '../plugins/hosts.ts'
import { reverseZones } from '../plugins/plugin.ts'
import type { RewriteRule } from '../plugins/rewrite.ts'
import { cacheOf } from './planCache.ts'
import { type CompilePattern, rewriteOf } from './planRewrite.ts'
import { CorefileError, type Directive, readCorefile, type ServerBlock } from './syntax.ts'
import { nameOf, wholeNumber } from './values.ts'

export interface KubernetesPlan {
  readonly ttl: number
  readonly fallthrough: readonly string[]
}

export interface ForwardPlan extends ForwardOptions {
  /** Addresses, or undefined: those of the node. */
  readonly servers: readonly string[] | undefined
}

/** A server answers for its zones; which one a question belongs to, the longest zone decides. */
export interface ServerPlan {
  readonly zones: readonly string[]
  /** Zones whose questions are logged. */
  readonly logged: readonly string[]
  readonly balances: boolean
  readonly cache?: CacheOptions
  readonly rewrites: readonly RewriteRule[]
  readonly hosts?: HostsOptions
  readonly kubernetes?: KubernetesPlan
  readonly forwards: readonly ForwardPlan[]
}

export interface PlanContext {
  /** The cluster's domain. */
  readonly zone: string
  /** Addresses of this server, to which nothing may be forwarded. */
  readonly own: readonly string[]
  /** Needed where hasPatterns() of the text. */
  readonly compilePattern?: CompilePattern | undefined
}

/** @throws CorefileError */
export function planCorefile(text: string, context: PlanContext): ServerPlan[] {
  const plans = readCorefile(text).map((block) => planServer(block, context))
  if (plans.length === 0) throw new CorefileError(1, 'there is no server')
  const seen = new Set<string>()
  for (const zone of plans.flatMap(({ zones }) => zones)) {
    if (seen.has(zone)) throw new CorefileError(1, `two servers have the zone "${zone}."`)
    seen.add(zone)
  }
  return plans
}

type MutablePlan = { -readonly [K in keyof ServerPlan]: ServerPlan[K] } & { logged: string[]; rewrites: RewriteRule[]; forwards: ForwardPlan[] }

function planServer(block: ServerBlock, context: PlanContext): ServerPlan {
  const zones = block.keys.map((key) => zoneOfKey(key, block.line))
  const plan: MutablePlan = { zones, logged: [], balances: false, rewrites: [], forwards: [] }
  for (const directive of block.directives) {
    const add = plugins.get(directive.name)
    if (!add) throw new CorefileError(directive.line, `there is no plugin "${directive.name}": those served are ${[...plugins.keys()].join(', ')}`)
    add(plan, directive, context)
  }
  return plan
}

function zoneOfKey(key: string, line: number): string {
  const [, zone = '', port = '53'] = /^(?:dns:\/\/)?([^:/]*)(?::(\d+))?$/.exec(key) ?? []
  if (port !== '53' || (zone === '' && !key.startsWith(':'))) throw new CorefileError(line, `"${key}" must be a zone with port 53 or none`)
  return nameOf(zone, line)
}

const plugins = new Map<string, (plan: MutablePlan, directive: Directive, context: PlanContext) => void>(
  Object.entries({
    // The log of the node's agent has errors in any case, its port has metrics, and a change of the Corefile is followed.
    errors: withoutEffect,
    health: withoutEffect,
    ready: withoutEffect,
    prometheus: withoutEffect,
    loop: withoutEffect,
    reload: withoutEffect,
    log: (plan, { args, line, options }) => {
      refuseOptions(options, 'log')
      plan.logged.push(...(args.length === 0 ? plan.zones : args.map((zone) => nameOf(zone, line))))
    },
    loadbalance: (plan, { args, line, options }) => {
      refuseOptions(options, 'loadbalance')
      if (args.length > 1 || !['round_robin', undefined].includes(args[0])) throw new CorefileError(line, `loadbalance: "${args.join(' ')}" is not served`)
      plan.balances = true
    },
    cache: (plan, directive) => {
      once(plan.cache, directive)
      plan.cache = cacheOf(directive, plan.zones)
    },
    rewrite: (plan, directive, { compilePattern }) => void plan.rewrites.push(rewriteOf(directive, compilePattern)),
    hosts: (plan, directive) => {
      once(plan.hosts, directive)
      plan.hosts = hostsOf(directive, plan.zones)
    },
    kubernetes: (plan, directive, context) => {
      once(plan.kubernetes, directive)
      plan.kubernetes = kubernetesOf(directive, plan.zones, context.zone)
    },
    forward: (plan, directive, context) => void plan.forwards.push(forwardOf(directive, context)),
  }),
)

function withoutEffect(): void {}

function once(there: unknown, { name, line }: Directive): void {
  if (there !== undefined) throw new CorefileError(line, `${name} stands twice in one server`)
}

function refuseOptions(options: readonly Directive[], plugin: string): void {
  const [first] = options
  if (first) throw new CorefileError(first.line, `${plugin}: the option "${first.name}" is not served`)
}

function hostsOf({ args, line, options }: Directive, zones: readonly string[]): HostsOptions {
  const [file, ...ofDirective] = args
  const own = ofDirective.length === 0 ? zones : ofDirective.map((zone) => nameOf(zone, line))
  let fallthrough: readonly string[] = []
  let ttl = 3600
  let hasReverse = true
  const entries: { address: string; names: string[] }[] = []
  for (const option of options) {
    const { name, args: values } = option
    if (net.isIP(name) !== 0) {
      if (values.length === 0) throw new CorefileError(option.line, `hosts: ${name} has no name`)
      entries.push({ address: name, names: values.map((value) => nameOf(value, option.line)) })
    } else if (name === 'fallthrough') fallthrough = values.length === 0 ? own : values.map((zone) => nameOf(zone, option.line))
    else if (name === 'ttl') ttl = wholeNumber(values[0], option, 65_535)
    else if (name === 'no_reverse') hasReverse = false
    else if (name !== 'reload') throw new CorefileError(option.line, `hosts: the option "${name}" is not served`)
  }
  if (file !== undefined && entries.length === 0) throw new CorefileError(line, `hosts: the file ${file} is not read: write its lines between the braces`)
  return { entries, zones: own, fallthrough, ttl, hasReverse }
}

function kubernetesOf({ args, line, options }: Directive, zones: readonly string[], zone: string): KubernetesPlan {
  const own = args.length === 0 ? zones : args.map((one) => nameOf(one, line))
  if (!own.includes(zone)) throw new CorefileError(line, `kubernetes: the zones must have the cluster's domain, ${zone}`)
  let ttl = 5
  let fallthrough: readonly string[] = []
  for (const option of options) {
    const { name, args: values } = option
    if (name === 'ttl') ttl = wholeNumber(values[0], option, 3600)
    else if (name === 'fallthrough') fallthrough = values.length === 0 ? own : values.map((one) => nameOf(one, option.line))
    else if (name === 'pods' && values[0] === 'insecure') continue
    else throw new CorefileError(option.line, `kubernetes: the option "${[name, ...values].join(' ')}" is not served`)
  }
  // The next plugin answers reverse names outside of its zones.
  return { ttl, fallthrough: [...fallthrough, ...reverseZones.filter((one) => !own.includes(one))] }
}

const maxServers = 15

function forwardOf({ args, line, options }: Directive, { own }: PlanContext): ForwardPlan {
  const [from, ...to] = args
  if (from === undefined || to.length === 0) throw new CorefileError(line, 'forward: FROM and TO are missing')
  if (to.length > maxServers) throw new CorefileError(line, `forward: more than ${maxServers} servers`)
  const ofNode = to.length === 1 && to[0] === '/etc/resolv.conf'
  const servers = ofNode ? undefined : to.map((server) => serverOf(server, line, own))
  let plan: ForwardPlan = { servers, zone: nameOf(from, line) }
  for (const option of options) {
    const { name, args: values } = option
    if (name === 'max_concurrent') plan = { ...plan, maxConcurrent: Math.max(1, wholeNumber(values[0], option, 10_000)) }
    else if (name === 'except') plan = { ...plan, except: values.map((zone) => nameOf(zone, option.line)) }
    else if (name === 'force_tcp') plan = { ...plan, protocol: 'tcp' }
    else if (name === 'policy' && ['random', 'round_robin', 'sequential'].includes(values[0] ?? '')) plan = { ...plan, takesTurns: values[0] !== 'sequential' }
    else if (!['expire', 'health_check', 'max_fails', 'max_idle_conns'].includes(name))
      throw new CorefileError(option.line, `forward: the option "${[name, ...values].join(' ')}" is not served`)
  }
  return plan
}

function serverOf(text: string, line: number, own: readonly string[]): string {
  const { host, port = 53 } = addressOf(text.replace(/^dns:\/\//, ''))
  if (net.isIP(host) === 0 || port < 1 || port > 65_535)
    throw new CorefileError(line, `forward: "${text}" must be an IP address, with or without a port, or /etc/resolv.conf`)
  if (/^127\.|^::1$/.test(host) || (port === 53 && own.includes(host))) throw new CorefileError(line, `forward: ${host} is this server itself`)
  return net.isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`
}
