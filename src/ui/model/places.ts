/** Where things are (L4, pure): paths of the API, and addresses of the page, which stand in the fragment of its URL. */

export interface Kind {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  readonly resource: string
  readonly kind: string
  readonly namespaced: boolean
  readonly verbs: readonly string[]
  readonly shortNames: readonly string[]
  readonly subresources: readonly string[]
}

export interface ObjectName {
  /** Empty for objects of the cluster. */
  readonly namespace: string
  readonly name: string
}

const groupPath = ({ group, version }: Pick<Kind, 'group' | 'version'>) => (group === '' ? `/api/${version}` : `/apis/${group}/${version}`)

type Resource = Pick<Kind, 'group' | 'version' | 'resource'>

/** @param namespace empty: all of them */
export function listPath(kind: Resource, namespace = ''): string {
  return `${groupPath(kind)}${namespace === '' ? '' : `/namespaces/${encodeURIComponent(namespace)}`}/${kind.resource}`
}

export function objectPath(kind: Resource, { namespace, name }: ObjectName, subresource?: string): string {
  return `${listPath(kind, namespace)}/${encodeURIComponent(name)}${subresource === undefined ? '' : `/${subresource}`}`
}

/** As kubectl writes it: deployments.apps. */
export const nameOfKind = ({ group, resource }: Pick<Kind, 'group' | 'resource'>): string => (group === '' ? resource : `${resource}.${group}`)

export interface Place {
  /** The view, and what it shows. */
  readonly path: readonly string[]
  readonly query: Readonly<Record<string, string>>
}

export function parsePlace(fragment: string): Place {
  const [path = '', query = ''] = fragment.replace(/^#?\/?/, '').split('?', 2)
  return { path: path.split('/').filter(Boolean).map(decoded), query: Object.fromEntries(new URLSearchParams(query)) }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

export function placeText(path: readonly string[], query: Readonly<Record<string, string | undefined>> = {}): string {
  const named = Object.entries(query).flatMap(([name, value]): [string, string][] => (value ? [[name, value]] : []))
  const words = new URLSearchParams(named).toString()
  return `#/${path.map(encodeURIComponent).join('/')}${words === '' ? '' : `?${words}`}`
}

export const listPlace = (kind: Pick<Kind, 'group' | 'resource'>, query: Readonly<Record<string, string | undefined>> = {}): string =>
  placeText(['list', nameOfKind(kind)], query)

/** @param tab the part of the object's page */
export const objectPlace = (kind: Pick<Kind, 'group' | 'resource'>, { namespace, name }: ObjectName, tab = 'summary'): string =>
  placeText(['object', nameOfKind(kind), namespace || '-', name, tab])

export interface DiscoveredGroups {
  readonly items?: readonly {
    readonly metadata?: { readonly name?: string }
    readonly versions?: readonly { readonly version: string; readonly resources?: readonly DiscoveredKind[] }[]
  }[]
}

interface DiscoveredKind {
  readonly resource: string
  readonly responseKind?: { readonly kind?: string }
  readonly scope?: string
  readonly verbs?: readonly string[]
  readonly shortNames?: readonly string[]
  readonly subresources?: readonly { readonly subresource: string }[]
}

/** The kinds that can be listed, each in its group's first version, from aggregated discovery. */
export function kindsOf(discovered: readonly DiscoveredGroups[]): Kind[] {
  const found = new Map<string, Kind>()
  for (const { metadata, versions } of discovered.flatMap(({ items = [] }) => items)) {
    for (const { version, resources = [] } of versions ?? []) {
      for (const one of resources) {
        const group = metadata?.name ?? ''
        const kind = {
          ...{ group, version, resource: one.resource, kind: one.responseKind?.kind ?? one.resource, namespaced: one.scope === 'Namespaced' },
          ...{ verbs: one.verbs ?? [], shortNames: one.shortNames ?? [], subresources: (one.subresources ?? []).map(({ subresource }) => subresource) },
        }
        if (kind.verbs.includes('list') && !found.has(nameOfKind(kind))) found.set(nameOfKind(kind), kind)
      }
    }
  }
  return [...found.values()]
}
