/**
 * The configuration file of `skiff etcd serve` (L5, pure): etcd's YAML, as the flags that it stands for. What concerns other members, or how etcd works inside, is
 * left out with a warning; what would make the server less safe when left out is refused. Upstream: etcd server/embed/config.go (configYAML), etcd.conf.yml.sample.
 */
import { parseYaml } from '#api/machinery/yaml'
import { messageOf } from '#base/messageOf'
import { type Flags, UsageError } from '../apiserver/options/flags.ts'

export interface ServeConfiguration {
  readonly args: readonly string[]
  /** About settings without effect. */
  readonly warnings: readonly string[]
}

type Entries = Readonly<Record<string, unknown>>

/** Flags that stand in a mapping of their own. */
const ofClients: readonly string[] = ['cert-file', 'key-file', 'client-cert-auth', 'trusted-ca-file']
const clientMapping = 'client-transport-security'
/** Without them a server accepts clients that the file keeps out. */
const needed: readonly string[] = [
  ...['auto-tls', 'client-crl-file', 'crl-file', 'allowed-hostname', 'allowed-hostnames', 'client-cert-allowed-hostname', 'allowed-cn'],
  ...['cipher-suites', 'tls-min-version', 'host-whitelist'],
]

/** @throws UsageError with every fault */
export function readServeConfiguration(file: string, text: string, flags: Flags): ServeConfiguration {
  const entries = entriesOf(file, text)
  const [args, warnings, faults]: [string[], string[], string[]] = [[], [], []]
  const take = (at: string, name: string, value: unknown, isFlag: boolean) => {
    if (isEmpty(value)) return
    if (isFlag) args.push(`--${name}=${textOf(name, value, flags)}`)
    else if (needed.includes(name)) faults.push(`${file}: ${at}: is not supported`)
    else warnings.push(`${file}: ${at}: left out`)
  }
  for (const [name, value] of Object.entries(entries)) {
    if (name === clientMapping && isMapping(value)) {
      for (const [inner, one] of Object.entries(value)) take(`${name}.${inner}`, inner, one, ofClients.includes(inner))
    } else if (name === 'initial-cluster' && String(value).includes(',')) {
      faults.push(`${file}: initial-cluster: names ${String(value).split(',').length} members: skiff etcd serve is one`)
    } else take(name, name, value, Object.hasOwn(flags, name) && !ofClients.includes(name))
  }
  if (faults.length > 0) throw new UsageError(faults)
  return { args, warnings }
}

function entriesOf(file: string, text: string): Entries {
  try {
    const read = parseYaml(text)
    if (read === null || read === undefined) return {}
    if (isMapping(read)) return read
  } catch (error) {
    throw new UsageError([`${file}: ${messageOf(error)}`])
  }
  throw new UsageError([`${file}: must be a mapping of etcd's settings`])
}

const isMapping = (value: unknown): value is Entries => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Settings as the sample of etcd has them: named, without a value. */
const isEmpty = (value: unknown) => value === null || value === undefined || value === '' || value === false || (Array.isArray(value) && value.length === 0)

/** etcd's file has durations in nanoseconds; a text is taken as the flag takes it. */
function textOf(name: string, value: unknown, flags: Flags): string {
  if (flags[name]?.type === 'duration' && typeof value === 'number') return `${value}ns`
  return Array.isArray(value) ? value.join(',') : String(value)
}
