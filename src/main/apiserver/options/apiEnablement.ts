/**
 * The flag that turns built-in APIs off (L5). Nothing but what v1.36 serves by default is built in, so there is nothing to turn on.
 * Upstream: apiserver/pkg/server/options/api_enablement.go, pkg/server/resourceconfig/helpers.go.
 */
import { builtInResources, groupVersionKey, type ResourceFacts, resourceKey } from '#api/discovery/resources'
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
  settings: (values) => ({ disabledResources: disabledResources(values['runtime-config']) }),
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

/** The resources that are not served, by `resourceKey`. @throws UsageError with every fault */
function disabledResources(config: Readonly<Record<string, string>>): ReadonlySet<string> {
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
  const isEnabled = (facts: ResourceFacts) => preferences.findLast(({ covers }) => covers(facts))?.enabled ?? true
  const disabled = builtInResources().filter((facts) => !isEnabled(facts))
  const needed = new Set(disabled.filter(({ group }) => neededGroups.has(group)).map(({ group, version }) => groupVersionKey(group, version)))
  if (faults.length === 0 && needed.size > 0) faults.push(`runtime-config must leave on what the server itself needs: ${[...needed].sort().join(', ')}`)
  if (faults.length > 0) throw new UsageError(faults)
  return new Set(disabled.map(({ group, version, resource }) => resourceKey(group, version, resource)))
}

/** The preference that a pair of --runtime-config expresses; a text when the pair is invalid: the error. */
function preferenceOf(key: string, value: string): Preference | string {
  const enabled = value === '' || /^(1|t|true)$/i.test(value)
  const pattern = kindsOfVersion[key]
  if (!enabled && !/^(0|f|false)$/i.test(value)) return `invalid value of ${key}: ${value}`
  if (enabled && notByDefault.has(key)) return `invalid value ${key}=${value}: APIs that are not served by default are not built in`
  if (pattern) return { enabled, covers: ({ version }) => pattern.test(version) }
  const [group = '', version = '', resource, ...more] = key.split('/')
  if (version === '' || more.length > 0) return `runtime-config invalid key ${key}`
  const all = builtInResources().filter((facts) => facts.group === group)
  if (all.length === 0) return `unknown api groups ${group}/${version}`
  const own = all.filter((facts) => facts.version === version)
  if (own.length === 0) return `group version ${group}/${version} that has not been registered`
  if (resource !== undefined && !own.some((facts) => facts.resource === resource)) return `group version ${group}/${version} has no resource ${resource}`
  return { enabled, covers: (facts) => facts.group === group && facts.version === version && (resource === undefined || facts.resource === resource) }
}
