/** Simulated nodes and their zones (L4): nodes fail and recover, and a zone takes no new pods. */
import { useSignal } from '@preact/signals'
import {
  cordonZonePatch,
  type FaultyNode,
  failNodePatch,
  failureOf,
  isReady,
  namesOf,
  recoverNodePatch,
  someOf,
  type Zone,
  zoneOf,
  zonesOf,
} from '../../../model/chaos.ts'
import { objectPath, objectPlace } from '../../../model/places.ts'
import { mergePatch } from '../../api.ts'
import { Button, Icon, Status } from '../../parts/basics.tsx'
import { ask } from '../../parts/confirm.tsx'
import { kindNamed, set } from '../../state.ts'
import { nodeKind, sendToAll } from './requests.ts'

const mostShown = 100
const message = 'a fault on purpose, from the page of skiff ui'

const pathOf = ({ metadata }: FaultyNode) => objectPath(nodeKind, { namespace: '', name: metadata.name ?? '' })

async function fail(nodes: readonly FaultyNode[]): Promise<void> {
  const text = `The container runtimes of these nodes fail until you undo it, and their pods are evicted as their tolerations say: ${namesOf(nodes)}.`
  if (nodes.length > 1 && !(await ask({ title: `Let ${nodes.length} nodes fail`, text, action: 'Fail', isDangerous: true }))) return
  await sendToAll(nodes, 'Nodes failing', (node) => mergePatch(pathOf(node), failNodePatch(message)))
}

async function cordon({ name, open }: Zone): Promise<void> {
  const text = `These nodes take no new pods: ${namesOf(open)}. Their pods run on.`
  if (!(await ask({ title: `Cordon zone ${name}`, text, action: 'Cordon', isDangerous: true }))) return
  await sendToAll(open, 'Nodes cordoned', (node) => mergePatch(pathOf(node), cordonZonePatch(name)))
}

export function NodeFaults({ nodes }: { readonly nodes: readonly FaultyNode[] }) {
  const [search, count] = [useSignal(''), useSignal(1)]
  const found = nodes.filter(({ metadata }) => (metadata.name ?? '').includes(search.value.trim()))
  const well = found.filter((node) => failureOf(node) === undefined)
  const zones = zonesOf(nodes)
  return (
    <>
      {zones.length > 0 && (
        <section class="panel" aria-label="Zones">
          <h2>Zones</h2>
          <ul class="force">
            {zones.map((zone) => (
              <ZoneLine key={zone.name} zone={zone} />
            ))}
          </ul>
        </section>
      )}
      <section class="panel" aria-label="Nodes">
        <h2>
          Nodes <span class="count">{found.length === nodes.length ? nodes.length : `${found.length} of ${nodes.length}`}</span>
        </h2>
        <form
          class="bar"
          onSubmit={(event) => {
            event.preventDefault()
            void fail(someOf(well, count.value, Math.random))
          }}
        >
          <label class="search">
            <Icon name="search" />
            <input aria-label="Node" placeholder="node" value={search.value} onInput={({ currentTarget }) => set(search, currentTarget.value)} />
          </label>
          <label>
            Random nodes
            <input
              type="number"
              min={1}
              max={Math.max(1, well.length)}
              required
              value={count.value}
              onInput={({ currentTarget }) => set(count, currentTarget.valueAsNumber || 1)}
            />
          </label>
          <button type="submit" class="danger" disabled={well.length === 0}>
            Let them fail
          </button>
        </form>
        <ul class="force">
          {found.slice(0, mostShown).map((node) => (
            <NodeLine key={node.metadata.name} node={node} />
          ))}
          {found.length > mostShown && <li class="quiet">and {found.length - mostShown} more: search for one</li>}
        </ul>
      </section>
    </>
  )
}

function ZoneLine({ zone }: { readonly zone: Zone }) {
  const { name, nodes, open } = zone
  return (
    <li>
      <strong class="name">{name}</strong>
      <span class="why">
        {open.length} of {nodes.length} simulated nodes take pods
      </span>
      <Button aria-label={`Cordon ${name}`} disabled={open.length === 0} onClick={() => void cordon(zone)}>
        Cordon…
      </Button>
    </li>
  )
}

function NodeLine({ node }: { readonly node: FaultyNode }) {
  const { name = '' } = node.metadata
  const kind = kindNamed('nodes')
  const isFailing = failureOf(node) !== undefined
  const recover = () => sendToAll([node], 'Nodes recovered', (one) => mergePatch(pathOf(one), recoverNodePatch))
  return (
    <li>
      <span class="name">{kind ? <a href={objectPlace(kind, { namespace: '', name })}>{name}</a> : name}</span>
      <span class="why">
        <Status text={isReady(node) ? 'Ready' : 'NotReady'} /> <span class="quiet">{zoneOf(node)}</span>{' '}
        {node.spec?.unschedulable && <span class="chip">cordoned</span>}
      </span>
      <Button aria-label={`${isFailing ? 'Recover' : 'Fail'} node ${name}`} onClick={() => void (isFailing ? recover() : fail([node]))}>
        {isFailing ? 'Recover' : 'Fail'}
      </Button>
    </li>
  )
}
