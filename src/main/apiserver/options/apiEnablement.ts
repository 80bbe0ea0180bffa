/**
 * The flag that turns built-in APIs off, and on those that v1.36 does not serve by default and that are built in here (L5).
 * Upstream: apiserver/pkg/server/options/api_enablement.go, pkg/server/resourceconfig/helpers.go.
 */
import { allResources, builtInResources, groupVersionKey, optionalResources, type ResourceFacts, resourceKey } from '#api/discovery/resources'
import { bareMap } from '#base/bareMap'
import { pairs, UsageError } from './flags.ts'
import { optionGroup } from './optionGroup.ts'

export const apiEnablement = optionGroup({
  name: 'API enablement',
  flags: {
    'runtime-config': pairs(
      'Which built-in APIs are served: <group>/<version>=true|false, or <group>/<version>/<resource>, without a group for the core one; api/all, api/ga, api/beta and api/alpha for all of a kind. The later of these go before the earlier',
    ),
  },
  settings: (values) => resourcesOf(values['runtime-config']),
})

const kindsOfVersion: Readonly<Record<string, RegExp>> = bareMap({
  'api/all': /^v\d+/,
  'api/ga': /^v\d+$/,
  'api/beta': /^v\d+beta\d+$/,
  'api/alpha': /^v\d+alpha\d+$/,
})
const notByDefault: ReadonlySet<string> = new Set(['api/all', 'api/beta', 'api/alpha'])

/** Where the server itself writes before it is ready. */
const neededGroups: ReadonlySet<string> = new Set([
  '',
  'apiregistration.k8s.io',
  'discovery.k8s.io',
  'flowcontrol.apiserver.k8s.io',
  'networking.k8s.io',
  'rbac.authorization.k8s.io',
  'scheduling.k8s.io',
])

interface Preference {
  readonly enabled: boolean
  covers(facts: ResourceFacts): boolean
}

/** By `resourceKey`. */
export interface ChosenResources {
  /** Resources that would be served, and are not. */
  readonly disabledResources: ReadonlySet<string>
  /** Resources that are served in addition, if their feature gates are on. */
  readonly optionalResources: ReadonlySet<string>
}

/** @throws UsageError with every fault */
function resourcesOf(config: Readonly<Record<string, string>>): ChosenResources {
  const faults: string[] = []
  const rank = (key: string) => (Object.hasOwn(kindsOfVersion, key) ? Object.keys(kindsOfVersion).indexOf(key) : key.split('/').length * 10)
  const preferences = Object.entries(config)
    .sort(([a], [b]) => rank(a) - rank(b))
    .flatMap(([key, value]): Preference[] => {
      const preference = preferenceOf(key, value)
      if (typeof preference !== 'string') return [preference]
      faults.push(preference)
      return []
    })
  if (config['api/all'] === 'false' && preferences.length === 1) faults.push('invalid runtime-config with only api/all=false')
  const preferred = (facts: ResourceFacts) => preferences.findLast(({ covers }) => covers(facts))?.enabled
  const disabled = builtInResources().filter((facts) => preferred(facts) === false)
  const needed = new Set(disabled.filter(({ group }) => neededGroups.has(group)).map(({ group, version }) => groupVersionKey(group, version)))
  if (faults.length === 0 && needed.size > 0) faults.push(`runtime-config must leave on what the server itself needs: ${[...needed].sort().join(', ')}`)
  if (faults.length > 0) throw new UsageError(faults)
  const keys = (resources: readonly ResourceFacts[]) => new Set(resources.map(({ group, version, resource }) => resourceKey(group, version, resource)))
  return { disabledResources: keys(disabled), optionalResources: keys(optionalResources().filter((facts) => preferred(facts) === true)) }
}

/** The preference that a pair of --runtime-config expresses; a text when the pair is invalid: the error. */
function preferenceOf(key: string, value: string): Preference | string {
  const enabled = value === '' || /^(1|t|true)$/i.test(value)
  const pattern = kindsOfVersion[key]
  if (!enabled && !/^(0|f|false)$/i.test(value)) return `invalid value of ${key}: ${value}`
  if (enabled && notByDefault.has(key)) return `invalid value ${key}=${value}: not all APIs that are off by default are built in`
  if (pattern) return { enabled, covers: ({ version }) => pattern.test(version) }
  const [group = '', version = '', resource, ...more] = key.split('/')
  if (version === '' || more.length > 0) return `runtime-config invalid key ${key}`
  const all = allResources().filter((facts) => facts.group === group)
  if (all.length === 0) return `unknown api groups ${group}/${version}`
  const own = all.filter((facts) => facts.version === version)
  if (own.length === 0) return `group version ${group}/${version} that has not been registered`
  if (resource !== undefined && !own.some((facts) => facts.resource === resource)) return `group version ${group}/${version} has no resource ${resource}`
  return { enabled, covers: (facts) => facts.group === group && facts.version === version && (resource === undefined || facts.resource === resource) }
}
