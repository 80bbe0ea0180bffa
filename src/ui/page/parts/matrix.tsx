/** The scheduler's view of one pod (L4): each node against each filter, the scores of the decision, and what would have to change. */
import type { NodeExplanation, SchedulingExplanation } from '#api/debug/scheduling'
import { objectPlace } from '../../model/places.ts'
import { kindNamed } from '../state.ts'
import { Age, Facts, Status } from './basics.tsx'

export function SchedulingAnswer({ found }: { readonly found: SchedulingExplanation }) {
  const { state, node, attempts, waitsFor, schedulingGates, nominatedNode, lastRefusal, placement } = found
  return (
    <>
      <section class="panel" aria-label="Scheduling">
        <Facts
          facts={[
            ['State', <Status key="state" text={node ? `${state} on ${node}` : state} tone={node ? 'good' : state === 'Unschedulable' ? 'bad' : 'busy'} />],
            ['Attempts', String(attempts)],
            ['Gates', schedulingGates.join(', ')],
            ['Waits for', waitsFor.join(', ')],
            ['Nominated', nominatedNode],
            ['Last answer', lastRefusal?.message],
            [
              'Placed',
              placement && (
                <span key="placed">
                  <Age since={placement.at} /> ago; {placement.evaluatedNodes} of {found.nodeCount} nodes looked at, {placement.feasibleNodes} fitted
                </span>
              ),
            ],
          ]}
        />
        {found.beforehand.map(({ plugin, reasons }) => (
          <p key={plugin}>
            {plugin} refuses the pod before any node is looked at: {reasons.join(', ')}
          </p>
        ))}
      </section>
      {placement && placement.scores.length > 0 && <Scores placement={placement} />}
      <Matrix found={found} />
    </>
  )
}

function Scores({ placement: { scores } }: { readonly placement: NonNullable<SchedulingExplanation['placement']> }) {
  const most = Math.max(1, ...scores.map(({ score }) => score))
  return (
    <section class="panel" aria-label="Scores of the node">
      <h2>Scores of the chosen node</h2>
      {scores.map(({ plugin, weight, score }) => (
        <div key={plugin} class="gauge">
          <span>{plugin}</span>
          <div class="meter">
            <i class="accent" style={{ width: `${(100 * score) / most}%` }} />
          </div>
          <span>
            {score} <span class="quiet">weight {weight}</span>
          </span>
        </div>
      ))}
    </section>
  )
}

function Matrix({ found: { nodes, filters, nodeCount, beforehand } }: { readonly found: SchedulingExplanation }) {
  if (nodes.length === 0) return null
  const nodeKind = kindNamed('nodes')
  return (
    <section class="panel" aria-label="Nodes and filters">
      <h2>
        Nodes and filters <span class="quiet">now, {nodes.length < nodeCount ? `${nodes.length} of ${nodeCount}` : nodeCount} nodes</span>
      </h2>
      <div class="matrix" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Node</th>
              <th scope="col">Fits</th>
              {filters.map((filter) => (
                <th key={filter} scope="col" class="slanted">
                  <span>{filter}</span>
                </th>
              ))}
              <th scope="col">What refuses, and what would have to change</th>
            </tr>
          </thead>
          <tbody>
            {nodes.map((node) => (
              <tr key={node.node}>
                <th scope="row">{nodeKind ? <a href={objectPlace(nodeKind, { namespace: '', name: node.node })}>{node.node}</a> : node.node}</th>
                <td>
                  <Status text={node.fits ? 'yes' : beforehand.length > 0 && node.refusals.length === 0 ? '–' : 'no'} tone={node.fits ? 'good' : 'bad'} />
                </td>
                {filters.map((filter) => (
                  <Verdict key={filter} node={node} filter={filter} />
                ))}
                <td class="reasons">
                  {node.refusals.flatMap(({ reasons }) => reasons).join(', ')}
                  {node.changes && (
                    <ul>
                      {node.changes.map(({ text }) => (
                        <li key={text}>{text}</li>
                      ))}
                    </ul>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function Verdict({ node, filter }: { readonly node: NodeExplanation; readonly filter: string }) {
  const refusal = node.refusals.find(({ plugin }) => plugin === filter)
  const text = refusal ? `${filter} refuses ${node.node}: ${refusal.reasons.join(', ')}` : `${filter} passes ${node.node}`
  return (
    <td class={refusal ? 'no' : 'yes'} title={text}>
      <span class="hidden">{refusal ? 'no' : 'yes'}</span>
      <i aria-hidden="true">{refusal ? '✕' : '✓'}</i>
    </td>
  )
}
