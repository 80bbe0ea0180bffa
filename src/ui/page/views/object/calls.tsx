/** What the kubelet asked of the container runtime and of CSI drivers for a pod or a claim, and the runtime of CNI plugins (L4, LRN-07), with arguments and answers. */
import type { NodeCall, NodeCalls } from '#api/debug/nodeCalls'
import { objectPath } from '../../../model/places.ts'
import { get } from '../../api.ts'
import { Button, Empty, Failure, Loading, Status } from '../../parts/basics.tsx'
import { useAnswer } from '../../parts/useAnswer.ts'
import { isStill } from '../../session.ts'
import { nodeNames, type OfNode, viewOf } from './nodes.ts'
import type { AnyObject, TabProps } from './types.ts'

export function CallsTab(props: TabProps) {
  return isStill() ? <Empty title="The agents of the nodes keep calls in memory: a bundle has none" /> : <Calls {...props} />
}

function Calls({ kind, name, object }: TabProps) {
  const { value, error, again } = useAnswer(
    (signal) => callsOf(kind.resource, name, object, signal),
    `${object.metadata.uid} ${object.metadata.resourceVersion}`,
  )
  if (error !== '') return <Failure text={error} retry={again} />
  if (!value) return <Loading text="Asking the nodes…" />
  return (
    <div class="summary">
      <p class="asked">
        <Button onClick={again}>Ask again</Button>
      </p>
      {value.length === 0 && <Empty title={kind.resource === 'pods' ? 'The pod has no node yet' : 'No node has worked on its volume'} />}
      {value.map((one) => (
        <CallsOfNode key={one.node} {...one} />
      ))}
    </div>
  )
}

async function callsOf(resource: string, name: TabProps['name'], { spec }: AnyObject, signal: AbortSignal): Promise<OfNode<NodeCalls>[]> {
  if (resource === 'pods') return spec?.nodeName ? [await viewOf('nodecalls', spec.nodeName, { pod: `${name.namespace}/${name.name}` }, signal)] : []
  const volumeName = spec?.volumeName as string | undefined
  if (!volumeName) throw new Error('The claim has no volume yet: its events say why.')
  const volume = await get<AnyObject>(objectPath({ group: '', version: 'v1', resource: 'persistentvolumes' }, { namespace: '', name: volumeName }), { signal })
  const handle = (volume.spec?.csi as { readonly volumeHandle?: string } | undefined)?.volumeHandle
  if (handle === undefined) throw new Error(`Volume ${volumeName} has no CSI driver, which could be called.`)
  // Any node may have had the volume.
  const { names } = await nodeNames(signal)
  const found = await Promise.all(names.map((node) => viewOf<NodeCalls>('nodecalls', node, { volume: handle }, signal)))
  return found.filter(({ found: told, error }) => error !== undefined || (told?.calls?.length ?? 0) > 0)
}

function CallsOfNode({ node, found, error }: OfNode<NodeCalls>) {
  const calls = found?.calls ?? []
  return (
    <section class="panel calls" aria-label={`Calls on ${node}`}>
      <h2>
        {node} <span class="quiet">{calls.length > 0 && `${calls.length} calls`}</span>
      </h2>
      {error && <p class="quiet">{error}</p>}
      {!error && calls.length === 0 && <p class="quiet">The kubelet keeps its last calls, and none is about it.</p>}
      <ol>
        {calls.map((call, index) => (
          <Call key={`${index} ${call.time}`} call={call} />
        ))}
      </ol>
    </section>
  )
}

function Call({ call: { api, method, time, milliseconds, code, request, answer } }: { readonly call: NodeCall }) {
  return (
    <li>
      <details>
        <summary>
          <time dateTime={time}>{time.slice(11, 23)}</time> <span class="chip">{api}</span> <strong>{method}</strong>{' '}
          <Status text={code ?? 'no answer yet'} tone={code === undefined ? 'busy' : code === 'OK' ? 'good' : 'bad'} />{' '}
          {milliseconds !== undefined && <span class="quiet">{milliseconds} ms</span>}
        </summary>
        <p class="quiet">request</p>
        <pre>{indented(request)}</pre>
        {answer !== undefined && (
          <>
            <p class="quiet">answer</p>
            <pre>{indented(answer)}</pre>
          </>
        )}
      </details>
    </li>
  )
}

/** A text that was shortened is no JSON any more. */
function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
