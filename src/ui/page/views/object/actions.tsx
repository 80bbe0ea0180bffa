/** What can be done with an object (L4): actions that replace or remove something ask first; each says what it did, and shows the server's refusal as it is. */
import { cordonPatch, type DrainablePod, drainPlan, type ReplicaSet, restartPatch, revisionsOf, rollbackPatch, scalePatch } from '../../../model/changes.ts'
import { listPath, objectPath, objectPlace } from '../../../model/places.ts'
import { ApiError, get, mergePatch, messageOf, type Patched, write } from '../../api.ts'
import { useKeys } from '../../keys.ts'
import { Button } from '../../parts/basics.tsx'
import { ask } from '../../parts/confirm.tsx'
import { isStill } from '../../session.ts'
import { go, say, wantsToEdit } from '../../state.ts'
import type { AnyObject, TabProps } from './types.ts'

interface Action {
  readonly title: string
  readonly key: string
  readonly isDangerous?: boolean
  readonly isFor: (props: TabProps) => boolean
  readonly act: (props: TabProps) => Promise<void>
}

const restartable = new Set(['deployments', 'statefulsets', 'daemonsets'])
const isNode = ({ kind }: TabProps) => kind.group === '' && kind.resource === 'nodes'

async function edit({ kind, name }: TabProps): Promise<void> {
  wantsToEdit.value = true
  go(objectPlace(kind, name, 'yaml'))
}

const actions: readonly Action[] = [
  { title: 'Edit', key: 'e', isFor: ({ kind }) => kind.verbs.includes('update'), act: edit },
  { title: 'Scale', key: 's', isFor: ({ kind, object }) => kind.subresources.includes('scale') && object.spec?.replicas !== undefined, act: scale },
  { title: 'Restart', key: 'r', isFor: ({ kind }) => kind.group === 'apps' && restartable.has(kind.resource), act: restart },
  { title: 'Roll back', key: 'b', isFor: ({ kind }) => kind.group === 'apps' && kind.resource === 'deployments', act: rollBack },
  { title: 'Cordon', key: 'c', isFor: (props) => isNode(props) && !props.object.spec?.unschedulable, act: (props) => cordon(props, true) },
  { title: 'Uncordon', key: 'c', isFor: (props) => isNode(props) && props.object.spec?.unschedulable === true, act: (props) => cordon(props, false) },
  { title: 'Drain', key: 'd', isDangerous: true, isFor: isNode, act: drain },
  { title: 'Delete', key: 'D', isDangerous: true, isFor: ({ kind }) => kind.verbs.includes('delete'), act: remove },
]

export function ObjectActions(props: TabProps) {
  const possible = isStill() ? [] : actions.filter(({ isFor }) => isFor(props))
  const run = (action: Action) => void action.act(props).catch((error: unknown) => say('bad', `${action.title}: ${messageOf(error)}`))
  useKeys(possible.map((action) => ({ key: action.key, text: action.title, act: () => run(action) })))
  return (
    <div class="actions">
      {possible.map((action) => (
        <Button key={action.title} title={`${action.title} (${action.key})`} class={action.isDangerous ? 'danger' : ''} onClick={() => run(action)}>
          {action.title}
        </Button>
      ))}
    </div>
  )
}

function done(text: string, { warnings }: Pick<Patched<unknown>, 'warnings'>): void {
  say('good', text)
  for (const warning of warnings) say('bad', warning)
}

async function scale({ kind, name, object }: TabProps): Promise<void> {
  const value = object.spec?.replicas ?? 0
  const reply = await ask({ title: `Scale ${name.name}`, text: '', action: 'Scale', number: { label: 'Replicas', value } })
  if (!reply) return
  done(`${name.name} is scaled to ${reply.number}`, await mergePatch(objectPath(kind, name, 'scale'), scalePatch(reply.number)))
}

async function restart({ kind, name }: TabProps): Promise<void> {
  if (!(await ask({ title: `Restart ${name.name}`, text: 'All of its pods are replaced, as its strategy says.', action: 'Restart' }))) return
  done(`${name.name} restarts`, await mergePatch(objectPath(kind, name), restartPatch(new Date().toISOString().replace(/\.\d+/, ''))))
}

async function rollBack({ kind, name, object }: TabProps): Promise<void> {
  const { items } = await get<{ items: ReplicaSet[] }>(listPath({ ...kind, resource: 'replicasets' }, name.namespace))
  const revisions = revisionsOf(object, items)
  const earlier = revisions.filter(({ isCurrent }) => !isCurrent)
  if (earlier.length === 0) throw new Error('there is no earlier revision')
  const values = earlier.map(({ number, images, cause }) => ({ value: String(number), text: `${number}: ${cause || images.join(', ')}` }))
  const reply = await ask({
    title: `Roll back ${name.name}`,
    text: 'Its pods are replaced by pods of the earlier template.',
    action: 'Roll back',
    choice: { label: 'Revision', values },
  })
  const chosen = earlier.find(({ number }) => String(number) === reply?.choice)
  if (!chosen) return
  const patch = rollbackPatch(chosen, object.metadata.resourceVersion ?? '')
  done(
    `${name.name} goes back to revision ${chosen.number}`,
    await write('PATCH', objectPath(kind, name), patch, { contentType: 'application/json-patch+json' }),
  )
}

async function cordon({ kind, name }: TabProps, isCordon: boolean): Promise<void> {
  const found = await mergePatch(objectPath(kind, name), cordonPatch(isCordon))
  done(isCordon ? `${name.name} takes no new pods` : `${name.name} takes pods again`, found)
}

async function drain(props: TabProps): Promise<void> {
  const { name } = props
  const { items } = await get<{ items: DrainablePod[] }>(`/api/v1/pods?fieldSelector=${encodeURIComponent(`spec.nodeName=${name.name}`)}`)
  const { evicted, left, warnings } = drainPlan(items)
  const text = (
    <>
      <p>
        The node takes no new pods, and {evicted.length} pods are evicted, as their disruption budgets allow. {left.length} stay.
      </p>
      {warnings.map((warning) => (
        <p key={warning} class="warning">
          {warning}
        </p>
      ))}
    </>
  )
  if (!(await ask({ title: `Drain ${name.name}`, text, action: 'Drain', isDangerous: true }))) return
  await cordon(props, true)
  const refused = (await Promise.all(evicted.map(evict))).filter((message) => message !== undefined)
  if (refused.length > 0) say('bad', `${refused.length} pods are not evicted: ${refused[0]}`)
  else say('good', `${evicted.length} pods of ${name.name} are evicted`)
}

const longestDrainMs = 60_000
const againMs = 5_000

/** Asks again while a disruption budget refuses. @returns why the pod stays */
async function evict({ metadata: { namespace = '', name = '', uid } }: DrainablePod): Promise<string | undefined> {
  const path = objectPath({ group: '', version: 'v1', resource: 'pods' }, { namespace, name }, 'eviction')
  const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { namespace, name }, deleteOptions: { preconditions: { uid } } }
  for (let waitedMs = 0; ; waitedMs += againMs) {
    try {
      await write('POST', path, body)
      return undefined
    } catch (error) {
      const isBudget = error instanceof ApiError && error.status === 429
      if (error instanceof ApiError && error.status === 404) return undefined
      if (!isBudget || waitedMs >= longestDrainMs) return messageOf(error)
      await new Promise((resolve) => setTimeout(resolve, againMs))
    }
  }
}

const ways = [
  { value: 'Background', text: 'dependants are deleted afterwards' },
  { value: 'Foreground', text: 'dependants are deleted first' },
  { value: 'Orphan', text: 'dependants stay' },
]

async function remove({ kind, name, object }: TabProps): Promise<void> {
  const reply = await ask({
    title: `Delete ${kind.kind} ${name.name}`,
    text: deletionText(object),
    action: 'Delete',
    isDangerous: true,
    choice: { label: 'What depends on it', values: ways },
  })
  if (!reply) return
  // Another object of the same name is not meant.
  const options = { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: reply.choice, preconditions: { uid: object.metadata.uid } }
  done(`${kind.kind} ${name.name} is being deleted`, await write('DELETE', objectPath(kind, name), options))
}

function deletionText({ metadata: { finalizers, namespace } }: AnyObject): string {
  const place = namespace ? ` in ${namespace}` : ''
  return finalizers?.length ? `The object${place} stays until ${finalizers.join(', ')} has cleaned up.` : 'This cannot be undone.'
}
