/** Nodes with their capacity as pictures (L4): each pod is a piece of the bar of its node. */
import { useSignal } from '@preact/signals'
import { amountText, type Counted, type CountedNode, type CountedPod, capacitiesOf, type NodeCapacity, type NodeShare } from '../../model/capacity.ts'
import { objectPlace } from '../../model/places.ts'
import { get } from '../api.ts'
import { Button, Empty, Failure, Icon, Loading, Status } from '../parts/basics.tsx'
import { useAnswer } from '../parts/useAnswer.ts'
import { kindNamed, set } from '../state.ts'

const everyMs = 10_000
const pageSize = 1_000
const mostNodes = 200
/** The pods beyond it share one piece. */
const mostPieces = 120

async function all<T>(path: string, signal: AbortSignal): Promise<T[]> {
  const items: T[] = []
  let token = ''
  do {
    const query = new URLSearchParams({ limit: String(pageSize), ...(token === '' ? {} : { continue: token }) })
    const page = await get<{ readonly items: readonly T[]; readonly metadata?: { readonly continue?: string } }>(`${path}?${query}`, { signal })
    for (const item of page.items) items.push(item)
    token = page.metadata?.continue ?? ''
  } while (token !== '')
  return items
}

async function read(signal: AbortSignal): Promise<NodeCapacity[]> {
  const [nodes, pods] = await Promise.all([all<CountedNode>('/api/v1/nodes', signal), all<CountedPod>('/api/v1/pods', signal)])
  return capacitiesOf(nodes, pods)
}

export function Capacity() {
  const { value, error, again } = useAnswer(read, 'capacity', everyMs)
  const search = useSignal('')
  if (error !== '' && !value) return <Failure text={error} retry={again} />
  if (!value) return <Loading text="Reading nodes and pods…" />
  const found = value.filter(({ name }) => name.includes(search.value.trim()))
  return (
    <section class="capacity">
      <header class="bar">
        <h1>Capacity</h1>
        <span class="quiet">what pods ask for, of what each node has for them</span>
        <Button onClick={again}>Ask again</Button>
        <label class="search">
          <Icon name="search" />
          <input aria-label="Node" placeholder="node" value={search.value} onInput={({ currentTarget }) => set(search, currentTarget.value)} />
        </label>
      </header>
      {found.length === 0 && <Empty title={search.value === '' ? 'The cluster has no nodes' : 'No such node'} />}
      <div class="cards">
        {found.slice(0, mostNodes).map((node) => (
          <NodeCard key={node.name} node={node} />
        ))}
      </div>
      {found.length > mostNodes && <p class="quiet">and {found.length - mostNodes} more nodes: search for one</p>}
    </section>
  )
}

function NodeCard({ node: { name, isReady, isCordoned, shares } }: { readonly node: NodeCapacity }) {
  const kind = kindNamed('nodes')
  return (
    <article class="card" aria-label={name}>
      <div class="title">
        <h2>{kind ? <a href={objectPlace(kind, { namespace: '', name })}>{name}</a> : name}</h2>
        <Status text={isReady ? (isCordoned ? 'SchedulingDisabled' : 'Ready') : 'NotReady'} />
      </div>
      {shares.map((share) => (
        <ShareBar key={share.resource} share={share} />
      ))}
    </article>
  )
}

const labels: Readonly<Record<Counted, string>> = { cpu: 'CPU', memory: 'memory', pods: 'pods' }

function ShareBar({ share: { resource, allocatable, requested, pods } }: { readonly share: NodeShare }) {
  const percent = (amount: number) => (allocatable === 0 ? 0 : (100 * amount) / allocatable)
  const [pieces, rest] = [pods.slice(0, mostPieces), pods.slice(mostPieces)]
  const text = `${amountText(resource, requested)} of ${amountText(resource, allocatable)}`
  return (
    <div class="share">
      <p>
        <span>{labels[resource]}</span> <span class={percent(requested) > 95 ? 'warning' : 'quiet'}>{text}</span>
      </p>
      <div class="pieces" role="img" aria-label={`${labels[resource]}: ${text}`}>
        {pieces.map(({ namespace, name, amount }, index) => (
          <i
            key={`${namespace}/${name}`}
            class={`c${index % 6}`}
            title={`${namespace}/${name}: ${amountText(resource, amount)}`}
            style={{ width: `${percent(amount)}%` }}
          />
        ))}
        {rest.length > 0 && (
          <i class="lane-quiet" title={`${rest.length} more pods`} style={{ width: `${percent(rest.reduce((sum, { amount }) => sum + amount, 0))}%` }} />
        )}
      </div>
    </div>
  )
}
