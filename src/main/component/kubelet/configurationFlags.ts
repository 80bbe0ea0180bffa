/**
 * The kubelet's flags that say the same as fields of its configuration file (L5): made from the table of fields. They win over the file and its drop-ins,
 * and are deprecated upstream, which is said. Upstream: AddKubeletConfigFlags of cmd/kubelet/app/options/options.go (v1.36).
 */
import { parseDuration } from '#api/machinery/duration'
import { type ConfigurationDocument, mergeDocuments } from '#kubelet/configuration/document'
import { configurationFields, type FieldType } from '#kubelet/configuration/fields'
import { type Flag, type Flags, type FlagValues, flag, list, pairs, text, texts, UsageError, whole } from '../../apiserver/options/flags.ts'
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

function gates(usage: string): Flag<Readonly<Record<string, boolean>>> {
  const parse = (given: string, before: Readonly<Record<string, boolean>> = {}) => {
    const named = Object.entries(pairs(usage).parse(given, undefined)).map(([name, value]) => {
      if (!/^(true|false)$/i.test(value)) throw new Error(`invalid value of ${name}=${value}`)
      return [name, value.toLowerCase() === 'true'] as const
    })
    return { ...before, ...Object.fromEntries(named) }
  }
  return {
    type: 'mapStringBool',
    usage,
    default: {},
    format: (value) =>
      Object.entries(value)
        .map((pair) => pair.join('='))
        .join(','),
    parse,
  }
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
    gates: gates(usage),
    object: text(usage),
    objects: text(usage),
  }
  return made[type] as Flag<unknown>
}

const flagged = Object.entries(configurationFields).flatMap(([name, { type, flag: flagName }]) => (flagName === undefined ? [] : [{ name, type, flagName }]))

const ofFields: Flags = Object.fromEntries(
  flagged.map(({ name, type, flagName }) => [flagName, optional(flagOf(type, name, `The configuration's ${name}`)) as Flag<unknown>]),
)

const nested = {
  'anonymous-auth': optional(flag("The configuration's authentication.anonymous.enabled")),
  'authentication-token-webhook': optional(flag("The configuration's authentication.webhook.enabled")),
  'authentication-token-webhook-cache-ttl': optional(durationText("The configuration's authentication.webhook.cacheTTL")),
  'client-ca-file': optional(text("The configuration's authentication.x509.clientCAFile")),
  'authorization-mode': optional(text("The configuration's authorization.mode: Webhook or AlwaysAllow")),
  'authorization-webhook-cache-authorized-ttl': optional(durationText("The configuration's authorization.webhook.cacheAuthorizedTTL")),
  'authorization-webhook-cache-unauthorized-ttl': optional(durationText("The configuration's authorization.webhook.cacheUnauthorizedTTL")),
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

const isGiven = (value: unknown) => value !== undefined && !(Array.isArray(value) && value.length === 0)

/** What is undefined is left out, and so is what holds nothing. */
function compact(value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => isGiven(one) && !(typeof one === 'object' && Object.keys(one as object).length === 0)))
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
