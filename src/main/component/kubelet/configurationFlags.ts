/**
 * The kubelet's flags that say the same as fields of its configuration file (L5): made from the table of fields. They win over the file and its drop-ins,
 * and are deprecated upstream, which is said. Upstream: AddKubeletConfigFlags of cmd/kubelet/app/options/options.go (v1.36).
 */
import { parseDuration } from '#api/machinery/duration'
import { isQuantity } from '#api/machinery/quantity'
import { bareMap } from '#base/bareMap'
import { type ConfigurationDocument, mergeDocuments } from '#kubelet/configuration/document'
import { configurationFields, type FieldType } from '#kubelet/configuration/fields'
import { type Flag, type Flags, type FlagValues, flag, list, pairs, switches, text, texts, UsageError, whole } from '../../apiserver/options/flags.ts'
import { optionGroup } from '../../apiserver/options/optionGroup.ts'
import { optional } from '../options/leaderElection.ts'

function durationText(usage: string): Flag<string> {
  const parse = (given: string) => {
    if (parseDuration(given) === undefined) throw new Error('expected a duration such as 1m30s')
    return given
  }
  return { ...text(usage), type: 'duration', parse }
}

/** `memory.available<1Gi,nodefs.available<10%`. */
function thresholds(usage: string): Flag<Readonly<Record<string, string>>> {
  const equals = pairs(usage)
  return { ...equals, type: 'mapStringString', parse: (given, before) => equals.parse(given.replaceAll('<', '='), before) }
}

function integers(usage: string): Flag<readonly number[]> {
  const parse = (given: string, before: readonly number[] = []) => {
    const numbers = given.split(',').map(Number)
    if (!numbers.every(Number.isSafeInteger)) throw new Error('expected whole numbers with commas between them')
    return [...before, ...numbers]
  }
  return { type: 'int32Slice', usage, default: [], format: (value) => value.join(','), parse }
}

function flagOf(type: FieldType, name: string, usage: string): Flag<unknown> {
  if (name === 'evictionHard' || name === 'evictionSoft') return thresholds(usage) as Flag<unknown>
  const made = {
    boolean: flag(usage),
    integer: whole(usage, 0),
    number: text(usage),
    duration: durationText(usage),
    string: text(usage),
    list: list(usage),
    map: pairs(usage),
    gates: switches(usage),
    object: text(usage),
    objects: text(usage),
    integers: integers(usage),
  }
  return made[type] as Flag<unknown>
}

const flagged = Object.entries(configurationFields).flatMap(([name, { type, flag: flagName }]) => (flagName === undefined ? [] : [{ name, type, flagName }]))

const ofFields: Flags = Object.fromEntries(
  flagged.map(({ name, type, flagName }) => [flagName, optional(flagOf(type, name, `The configuration's ${name}`)) as Flag<unknown>]),
)

/** `Name:value` pairs with commas between them; a name may come again, with one more value. */
const headers: Flag<Readonly<Record<string, readonly string[]>>> = {
  type: 'colonSeparatedMultimapStringString',
  usage: "The configuration's staticPodURLHeader",
  default: {},
  format: (value) =>
    Object.entries(value)
      .flatMap(([name, values]) => values.map((one) => `${name}:${one}`))
      .join(','),
  parse(given, before = {}) {
    const all: Record<string, readonly string[]> = bareMap({ ...before })
    for (const pair of given.split(',').filter(Boolean)) {
      const at = pair.indexOf(':')
      if (at < 0) throw new Error('malformed pair, expect string:string')
      const name = pair.slice(0, at).trim()
      all[name] = [...(all[name] ?? []), pair.slice(at + 1).trim()]
    }
    return { ...all }
  },
}

interface MemoryReservation {
  readonly numaNode: number
  readonly limits: Readonly<Record<string, string>>
}

/** `0:memory=1Gi,hugepages-2Mi=2Gi`, one NUMA node a flag or with semicolons between them. */
const reservations: Flag<readonly MemoryReservation[]> = {
  type: 'reserved-memory',
  usage: "The configuration's reservedMemory",
  default: [],
  format: (value) => value.map(({ numaNode, limits }) => `${numaNode}:${pairs('').format(limits)}`).join(';'),
  parse: (given, before = []) => [...before, ...given.split(';').filter(Boolean).map(reservationOf)],
}

function reservationOf(given: string): MemoryReservation {
  const [node = '', list, ...more] = given.split(':')
  if (list === undefined || more.length > 0) {
    throw new Error(`the reserved memory has incorrect format, expected numaNodeID:type=quantity[,type=quantity...], got ${given}`)
  }
  if (!/^\d+$/.test(node)) throw new Error(`failed to convert the NUMA node ID, exptected integer, got ${node}`)
  const limits = list.split(',').map((one): [string, string] => {
    const [type = '', quantity, ...rest] = one.split('=')
    if (quantity === undefined || rest.length > 0) throw new Error(`the reserved limit has incorrect value, expected type=quantatity, got ${one}`)
    if (type !== 'memory' && !type.startsWith('hugepages-')) throw new Error(`memory type conversion error, unknown type: "${type}"`)
    if (!isQuantity(quantity)) throw new Error(`failed to parse the quantatity, expected quantatity, got ${quantity}`)
    return [type, quantity]
  })
  return { numaNode: Number(node), limits: Object.fromEntries(limits) }
}

const nested = {
  'anonymous-auth': optional(flag("The configuration's authentication.anonymous.enabled")),
  'authentication-token-webhook': optional(flag("The configuration's authentication.webhook.enabled")),
  'authentication-token-webhook-cache-ttl': optional(durationText("The configuration's authentication.webhook.cacheTTL")),
  'client-ca-file': optional(text("The configuration's authentication.x509.clientCAFile")),
  'authorization-mode': optional(text("The configuration's authorization.mode: Webhook or AlwaysAllow")),
  'authorization-webhook-cache-authorized-ttl': optional(durationText("The configuration's authorization.webhook.cacheAuthorizedTTL")),
  'authorization-webhook-cache-unauthorized-ttl': optional(durationText("The configuration's authorization.webhook.cacheUnauthorizedTTL")),
  'manifest-url-header': headers,
  'reserved-memory': reservations,
  'register-with-taints': texts("The configuration's registerWithTaints, as key=value:effect with commas between them"),
} as const

const notDeprecated = new Set(['provider-id'])

export interface ConfigurationFlags {
  /** What was given, as a document. */
  readonly document: ConfigurationDocument
  /** One sentence for each flag that upstream would rather see in the file. */
  readonly deprecations: readonly string[]
}

export const configurationFlags = optionGroup({
  name: 'Configuration',
  flags: { ...ofFields, ...nested },
  settings(values): ConfigurationFlags {
    const all = values as FlagValues<Flags>
    const given = flagged.filter(({ flagName }) => all[flagName] !== undefined)
    const own = Object.fromEntries(given.map(({ name, flagName }) => [name, all[flagName]]))
    const names = [...given.map(({ flagName }) => flagName), ...Object.keys(nested).filter((name) => isGiven(all[name]))]
    return {
      document: mergeDocuments(own, nestedDocument(values)),
      deprecations: names
        .filter((name) => !notDeprecated.has(name))
        .map((name) => `Flag --${name} has been deprecated, This parameter should be set via the config file specified by the Kubelet's --config flag.`),
    }
  },
})

/** What is undefined is not given, and neither is what holds nothing. */
const isGiven = (value: unknown) => value !== undefined && !(typeof value === 'object' && Object.keys(value as object).length === 0)

function compact(value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => isGiven(one)))
}

function nestedDocument(values: FlagValues<typeof nested>): ConfigurationDocument {
  const x509 = compact({ clientCAFile: values['client-ca-file'] })
  const tokens = compact({ enabled: values['authentication-token-webhook'], cacheTTL: values['authentication-token-webhook-cache-ttl'] })
  const anonymous = compact({ enabled: values['anonymous-auth'] })
  const webhook = compact({
    cacheAuthorizedTTL: values['authorization-webhook-cache-authorized-ttl'],
    cacheUnauthorizedTTL: values['authorization-webhook-cache-unauthorized-ttl'],
  })
  return compact({
    authentication: compact({ x509, webhook: tokens, anonymous }),
    authorization: compact({ mode: values['authorization-mode'], webhook }),
    staticPodURLHeader: values['manifest-url-header'],
    reservedMemory: values['reserved-memory'],
    registerWithTaints: values['register-with-taints'].flatMap((given) => given.split(',').filter(Boolean).map(taintOf)),
  })
}

function taintOf(given: string) {
  const [, key = '', value, effect] = /^([^=:]+)(?:=([^:]*))?:(NoSchedule|PreferNoSchedule|NoExecute)$/.exec(given) ?? []
  if (effect === undefined) {
    throw new UsageError([`--register-with-taints: "${given}" is no taint: use key=value:effect with NoSchedule, PreferNoSchedule or NoExecute`])
  }
  return { key, ...(value === undefined ? {} : { value }), effect }
}
