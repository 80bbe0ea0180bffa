/**
 * PodSecurityConfiguration (L3): the defaults of namespaces without labels, and the exemptions.
 * Upstream: k8s.io/pod-security-admission/admission/api (v0.36): load, defaults, validation.
 */
import { decodeConfiguration } from '#api/configuration/decode'
import { kind, list, struct, text } from '#api/configuration/schemas'
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'
import { isDns1123Label, isDns1123Subdomain } from '#api/machinery/names'
import { type LevelVersion, levelFault, modes, type Policy, parseLevel, parseVersion, privilegedLatest, versionFault } from '#api/podSecurity/policy'

export interface PodSecurityConfiguration {
  readonly defaults: Policy
  readonly exemptions: {
    readonly usernames: ReadonlySet<string>
    readonly namespaces: ReadonlySet<string>
    readonly runtimeClasses: ReadonlySet<string>
  }
}

/** Without a file, namespaces without labels are privileged. */
export const defaultPodSecurity: PodSecurityConfiguration = {
  defaults: { enforce: privilegedLatest, audit: privilegedLatest, warn: privilegedLatest },
  exemptions: { usernames: new Set(), namespaces: new Set(), runtimeClasses: new Set() },
}

/** The order in which faults are reported. */
const inOrder = ['enforce', 'warn', 'audit'] as const
const group = 'pod-security.admission.config.k8s.io'
const defaultsFields = Object.fromEntries(modes.flatMap((mode) => [mode, `${mode}-version`]).map((field) => [field, text]))
const kinds = [
  {
    kind: 'PodSecurityConfiguration',
    apiVersions: [`${group}/v1`, `${group}/v1beta1`, `${group}/v1alpha1`],
    schema: kind('PodSecurityConfiguration', {
      defaults: struct('PodSecurityDefaults', defaultsFields),
      exemptions: struct('PodSecurityExemptions', { usernames: list(text), namespaces: list(text), runtimeClasses: list(text) }),
    }),
  },
]

interface Decoded {
  readonly defaults?: Readonly<Record<string, string>>
  readonly exemptions?: { readonly usernames?: readonly string[]; readonly namespaces?: readonly string[]; readonly runtimeClasses?: readonly string[] }
}

/** @throws Error with every fault */
export function podSecurityConfiguration(content: string): PodSecurityConfiguration {
  const { defaults = {}, exemptions = {} } = decodeConfiguration(content, kinds).value as Decoded
  const faults: FieldError[] = []
  const read = inOrder.map((mode): [string, LevelVersion] => {
    const level = parseLevel(defaults[mode] || 'privileged')
    const version = parseVersion(defaults[`${mode}-version`] || 'latest')
    if (level === undefined) faults.push(fieldError.invalid(FieldPath.of('defaults', mode), defaults[mode], levelFault))
    if (version === undefined) faults.push(fieldError.invalid(FieldPath.of('defaults', `${mode}-version`), defaults[`${mode}-version`], versionFault))
    return [mode, { level: level ?? 'restricted', version: version ?? 'latest' }]
  })
  const names = (field: keyof PodSecurityConfiguration['exemptions'], faultsOf: (name: string) => readonly string[]) => {
    const seen = new Set<string>()
    for (const [index, name] of (exemptions[field] ?? []).entries()) {
      const path = FieldPath.of('exemptions', field).index(index)
      const wrong = faultsOf(name)
      if (wrong.length > 0) faults.push(fieldError.invalid(path, name, wrong.join(', ')))
      else if (seen.has(name)) faults.push(fieldError.duplicate(path, name))
      else seen.add(name)
    }
    return seen
  }
  const namespaces = names('namespaces', isDns1123Label)
  const runtimeClasses = names('runtimeClasses', isDns1123Subdomain)
  const usernames = names('usernames', (name) => (name === '' ? ['username must not be empty'] : []))
  if (faults.length > 0) {
    const texts = faults.map(({ field, body }) => `${field}: ${body}`)
    throw new Error(texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`)
  }
  return { defaults: Object.fromEntries(read) as Policy, exemptions: { usernames, namespaces, runtimeClasses } }
}
