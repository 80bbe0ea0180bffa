/** What the user of `skiff net trace` names as the target (L4), pure: a Service, a name as the pod would use it, a URL, a pod, or an address with a port. */
import { parseIp } from '#api/machinery/ip'
import { CommandError } from '../../exitCodes.ts'
import { namedObject } from '../reader.ts'
import type { Target } from './facts.ts'

const isHost = /^[a-z0-9]([-a-z0-9_.]{0,251}[a-z0-9])?\.?$/i
const servicePrefix = /^(?:svc|services?)\//
const podPrefix = /^(?:pods?|po)\//

/** @param namespace where names without one are */
export function parseTarget(text: string, namespace: string, port: string | undefined): Target {
  const common = { text, isTls: false, ...(port === undefined ? {} : { port }) }
  if (podPrefix.test(text)) return { ...common, pod: namedObject(text, podPrefix, namespace) }
  if (text.includes('://')) return urlTarget(text, port)
  if (servicePrefix.test(text) || /^[^:/]+\/[^:/]+$/.test(text)) {
    const service = namedObject(text, servicePrefix, namespace)
    return { ...common, service }
  }
  const bracketed = /^\[([^\]]+)\](?::(\w[-\w]*))?$/.exec(text)
  const [, host = '', given] = bracketed ?? (parseIp(text) ? [text, text] : (/^([^:]+)(?::(\w[-\w]*))?$/.exec(text) ?? []))
  const chosen = port ?? given
  return hostTarget(text, host, { isTls: chosen === '443', ...(chosen === undefined ? {} : { port: chosen }) })
}

function urlTarget(text: string, port: string | undefined): Target {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:')) throw new CommandError('usage', `${text}: expected a URL with http or https`)
  const isTls = url.protocol === 'https:'
  return hostTarget(text, url.hostname.replace(/^\[|\]$/g, ''), { isTls, port: port ?? (url.port || (isTls ? '443' : '80')) })
}

function hostTarget(text: string, host: string, rest: Pick<Target, 'isTls' | 'port'>): Target {
  if (parseIp(host)) {
    if (rest.port === undefined) throw new CommandError('usage', `${text}: an address needs a port: ${text} --port 80`)
    return { text, address: host, ...rest }
  }
  if (!isHost.test(host)) throw new CommandError('usage', `${text}: expected a Service, a name, a URL, pod/NAME or ADDRESS:PORT`)
  return { text, host: host.toLowerCase(), ...rest }
}

/** The names that a resolver tries for a host, in its order. At most eight. */
export function candidateNames(host: string, searches: readonly string[], options: readonly string[]): string[] {
  const plain = host.replace(/\.$/, '')
  if (host.endsWith('.')) return [plain]
  const ndots = Number(options.findLast((option) => option.startsWith('ndots:'))?.slice('ndots:'.length) ?? 1)
  const searched = searches.filter((search) => search !== '.').map((search) => `${plain}.${search}`)
  const isFullFirst = plain.split('.').length - 1 >= ndots
  return [...new Set(isFullFirst ? [plain, ...searched] : [...searched.slice(0, 7), plain])].slice(0, 8)
}

/** The Service that a name means, as cluster DNS would take it; undefined: the name is of another kind. */
export function serviceOfName(host: string, namespace: string, domain: string): { readonly namespace: string; readonly name: string } | undefined {
  const plain = host.replace(/\.$/, '')
  const short = plain.endsWith(`.${domain}`) ? plain.slice(0, -domain.length - 1) : plain
  const [name = '', of, kind, ...more] = short.split('.')
  if (more.length > 0 || (kind !== undefined && kind !== 'svc')) return undefined
  return { name, namespace: of ?? namespace }
}
