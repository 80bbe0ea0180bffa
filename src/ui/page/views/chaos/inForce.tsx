/** The faults that are in force (L4), each with its undo. They stand on the objects: those of another tab, or of an earlier one, are among them. */
import type { ComponentChildren } from 'preact'
import { type FaultyNode, type FaultyPod, failureOf, faultOf, namesOf, recoverNodePatch, uncordonZonePatch, undoPatch, zonesOf } from '../../../model/chaos.ts'
import { objectPath, objectPlace } from '../../../model/places.ts'
import { mergePatch } from '../../api.ts'
import { Button, Status } from '../../parts/basics.tsx'
import { ask } from '../../parts/confirm.tsx'
import { kindNamed, now } from '../../state.ts'
import { type Deletion, deletion } from './deletion.ts'
import { nodeKind, podKind, sendToAll } from './requests.ts'

const mostShown = 50

interface InForceProps {
  readonly nodes: readonly FaultyNode[]
  readonly pods: readonly FaultyPod[]
  /** Why the pods are not known. */
  readonly error: string
}

const pathOf = (kind: typeof podKind, { metadata: { namespace = '', name = '' } }: Pick<FaultyPod, 'metadata'>) => objectPath(kind, { namespace, name })
const recover = (nodes: readonly FaultyNode[]) => sendToAll(nodes, 'Nodes recovered', (node) => mergePatch(pathOf(nodeKind, node), recoverNodePatch))
const uncordon = (nodes: readonly FaultyNode[]) => sendToAll(nodes, 'Nodes uncordoned', (node) => mergePatch(pathOf(nodeKind, node), uncordonZonePatch))
const restore = (pods: readonly FaultyPod[]) => sendToAll(pods, 'Pods restored', (pod) => mergePatch(pathOf(podKind, pod), undoPatch(pod)))

export function InForce({ nodes, pods, error }: InForceProps) {
  const failed = nodes.filter((node) => failureOf(node) !== undefined)
  const zones = zonesOf(nodes).filter(({ cordoned }) => cordoned.length > 0)
  const run = deletion.value
  const count = failed.length + zones.length + pods.length + (run ? 1 : 0)
  const undoAll = async () => {
    const cordoned = zones.flatMap((zone) => zone.cordoned)
    const text = `Nodes that recover: ${failed.length}. Nodes that take pods again: ${cordoned.length}. Pods that are restored: ${pods.length}.`
    if (!(await ask({ title: 'Undo everything', text, action: 'Undo' }))) return
    run?.stop()
    for (const undo of [() => recover(failed), () => uncordon(cordoned), () => restore(pods)]) await undo()
  }
  return (
    <section class="panel" aria-label="In force">
      <h2>
        In force <span class="count">{count}</span> {count > 1 && <Button onClick={() => void undoAll()}>Undo everything…</Button>}
      </h2>
      {error !== '' && <p class="quiet">{error}</p>}
      {count === 0 && <p class="quiet">No fault is in force.</p>}
      <ul class="force">
        {run && <RunningDeletion run={run} />}
        {failed.slice(0, mostShown).map((node) => (
          <Fault
            key={`node ${node.metadata.name}`}
            kind="nodes"
            object={node}
            text={`fails: ${failureOf(node)}`}
            action="Recover"
            undo={() => recover([node])}
          />
        ))}
        {zones.map(({ name, cordoned }) => (
          <Line key={`zone ${name}`} name={<strong>zone {name}</strong>} text={`cordoned nodes: ${cordoned.length}`}>
            <Button onClick={() => void undoZone(name, cordoned)}>Uncordon…</Button>
          </Line>
        ))}
        {pods.slice(0, mostShown).map((pod) => (
          <Fault key={`pod ${pod.metadata.uid}`} kind="pods" object={pod} text={`fault: ${faultOf(pod)}`} action="Undo" undo={() => restore([pod])} />
        ))}
        {failed.length > mostShown && <li class="quiet">and {failed.length - mostShown} more nodes that fail</li>}
        {pods.length > mostShown && <li class="quiet">and {pods.length - mostShown} more pods</li>}
      </ul>
    </section>
  )
}

async function undoZone(zone: string, cordoned: readonly FaultyNode[]): Promise<void> {
  const text = `These nodes take pods again: ${namesOf(cordoned)}.`
  if (await ask({ title: `Uncordon zone ${zone}`, text, action: 'Uncordon' })) await uncordon(cordoned)
}

interface FaultProps {
  readonly kind: 'nodes' | 'pods'
  readonly object: Pick<FaultyPod, 'metadata'>
  readonly text: string
  readonly action: string
  readonly undo: () => Promise<void>
}

function Fault({ kind, object, text, action, undo }: FaultProps) {
  const { namespace = '', name = '' } = object.metadata
  const known = kindNamed(kind)
  const title = namespace === '' ? name : `${namespace}/${name}`
  return (
    <Line name={known ? <a href={objectPlace(known, { namespace, name })}>{title}</a> : title} text={text}>
      <Button aria-label={`${action} ${title}`} onClick={() => void undo()}>
        {action}
      </Button>
    </Line>
  )
}

function Line({ name, text, children }: { readonly name: ComponentChildren; readonly text: string; readonly children: ComponentChildren }) {
  return (
    <li>
      <span class="name">{name}</span>
      <span class="why">{text}</span>
      {children}
    </li>
  )
}

function RunningDeletion({ run: { perMinute, endsAtMs, removed, refused, isEviction, error, stop } }: { readonly run: Deletion }) {
  const seconds = Math.max(0, Math.round((endsAtMs - now.value) / 1000))
  const text = `${isEviction ? 'evictions' : 'deletions'}, ${perMinute} a minute for ${seconds} s more: ${removed} until now${refused > 0 ? `, and ${refused} refused by budgets` : ''}`
  return (
    <Line name={<Status text="this tab" tone="busy" />} text={error === '' ? text : `${text}; ${error}`}>
      <Button onClick={stop}>Stop</Button>
    </Line>
  )
}
