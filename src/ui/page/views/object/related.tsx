/** Owners and dependants of an object as a tree (L4), from the kinds that usually depend on others. */
import { listPath, objectPlace } from '../../../model/places.ts'
import { tableForm } from '../../../model/protocols.ts'
import { type Branch, type OwnerReference, type Related, relatedOf, treeOf } from '../../../model/relations.ts'
import type { Row, TableAnswer } from '../../../model/tables.ts'
import { ApiError, get } from '../../api.ts'
import { Empty, Failure, Loading } from '../../parts/basics.tsx'
import { useAnswer } from '../../parts/useAnswer.ts'
import { kindOfObject, kinds } from '../../state.ts'
import type { TabProps } from './types.ts'

const linked = new Set([
  ...['pods', 'replicasets', 'jobs', 'endpointslices', 'controllerrevisions', 'persistentvolumeclaims', 'resourceclaims'],
  ...['deployments', 'statefulsets', 'daemonsets', 'cronjobs', 'services'],
])

export function RelatedTab({ kind, name, object }: TabProps) {
  const { value, error, again } = useAnswer((signal) => candidates(name.namespace, signal), `${name.namespace} ${object.metadata.uid}`)
  if (error !== '') return <Failure text={error} retry={again} />
  if (!value) return <Loading />
  const { found, cut } = value
  const self: Related = {
    kind: kind.kind,
    namespace: name.namespace,
    name: name.name,
    uid: object.metadata.uid ?? '',
    owners: object.metadata.ownerReferences ?? [],
  }
  const root = rootOf(self, found)
  const tree = treeOf(root, found)
  if (tree.dependants.length === 0 && self.owners.length === 0 && cut.length === 0) return <Empty title="Nothing owns it, and it owns nothing" />
  return (
    <section class="panel" aria-label="Owners and dependants">
      <ul class="tree">
        <TreeNode branch={tree} current={self.uid} />
      </ul>
      {cut.length > 0 && (
        <p class="warning">
          Only the first {mostOfKind} of {cut.join(', ')} are searched.
        </p>
      )}
    </section>
  )
}

function TreeNode({ branch: { object, dependants: below }, current }: { readonly branch: Branch; readonly current: string }) {
  const kind = kindOfObject(object.kind)
  const isCurrent = object.uid === current
  return (
    <li>
      <span class={isCurrent ? 'node current' : 'node'}>
        <span class="quiet">{object.kind}</span>{' '}
        {kind ? (
          <a href={objectPlace(kind, object, 'related')} aria-current={isCurrent ? 'true' : undefined}>
            {object.name}
          </a>
        ) : (
          object.name
        )}
      </span>
      {below.length > 0 && (
        <ul>
          {below.slice(0, 200).map((branch) => (
            <TreeNode key={branch.object.uid} branch={branch} current={current} />
          ))}
        </ul>
      )}
    </li>
  )
}

/** The topmost owner that is known. An owner that cannot be listed is shown by its reference. */
function rootOf(object: Related, found: readonly Related[], depth = 0): Related {
  const [owner] = object.owners
  if (!owner || depth > 8) return object
  const known = found.find(({ uid }) => uid === owner.uid) ?? { ...owner, namespace: object.namespace, owners: [] }
  return rootOf(known, found, depth + 1)
}

type OwnedRow = Row & { readonly object: { readonly metadata: { readonly ownerReferences?: readonly OwnerReference[] } } }

const mostOfKind = 2_000

interface Candidates {
  readonly found: readonly Related[]
  /** Resources with more objects than were read. */
  readonly cut: readonly string[]
}

async function candidates(namespace: string, signal: AbortSignal): Promise<Candidates> {
  const wanted = kinds.value.filter(({ resource, namespaced }) => namespaced && linked.has(resource))
  const lists = await Promise.all(
    wanted.map(async (kind) => {
      const table = await get<TableAnswer>(`${listPath(kind, namespace)}?limit=${mostOfKind}`, { accept: tableForm, signal }).catch(leftOut)
      const related = (table.rows ?? []).map((row) => relatedOf(kind.kind, row as OwnedRow))
      return { related, cut: table.metadata?.continue ? [kind.resource] : [] }
    }),
  )
  return { found: lists.flatMap(({ related }) => related), cut: lists.flatMap(({ cut }) => cut) }
}

/** A kind that the user may not list is left out. */
function leftOut(error: unknown): TableAnswer {
  if (error instanceof ApiError && error.status === 403) return {}
  throw error
}
