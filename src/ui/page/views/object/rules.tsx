/** How each node carries a Service (L4, LRN-06): the rules of its proxy as the kernel has them, in the order in which a packet meets them. */
import type { NodeServiceRules, ServiceRuleText } from '#api/debug/nodeNetwork'
import { Button, Empty, Failure, Loading, Status } from '../../parts/basics.tsx'
import { useAnswer } from '../../parts/useAnswer.ts'
import { isStill } from '../../session.ts'
import { mostNodes, nodeNames, type OfNode, viewOf } from './nodes.ts'
import type { TabProps } from './types.ts'

export function RulesTab(props: TabProps) {
  return isStill() ? <Empty title="Rules are read from the kernels of the nodes: a bundle has none" /> : <Rules {...props} />
}

function Rules({ name, object }: TabProps) {
  const service = `${name.namespace}/${name.name}`
  const { value, error, again } = useAnswer((signal) => rulesOf(service, signal), `${service} ${object.metadata.resourceVersion}`)
  if (error !== '') return <Failure text={error} retry={again} />
  if (!value) return <Loading text="Asking the nodes…" />
  if (value.nodes.length === 0) return <Empty title="The cluster has no nodes" />
  return (
    <div class="summary">
      <p class="asked">
        <Button onClick={again}>Ask again</Button>
        {value.isCut && <span class="quiet">the first {mostNodes} nodes are asked</span>}
      </p>
      {value.nodes.map((one) => (
        <NodeRules key={one.node} {...one} />
      ))}
    </div>
  )
}

async function rulesOf(service: string, signal: AbortSignal) {
  const { names, isCut } = await nodeNames(signal)
  return { isCut, nodes: await Promise.all(names.map((node) => viewOf<NodeServiceRules>('servicerules', node, { service }, signal))) }
}

function NodeRules({ node, found, error }: OfNode<NodeServiceRules>) {
  const { mode, rules = [], isStopped } = found ?? {}
  const missing = rules.filter(({ lines }) => lines === undefined).length
  return (
    <details class="panel rules" open={rules.length > 0 || error !== undefined} aria-label={`Rules on ${node}`}>
      <summary>
        <strong>{node}</strong> {mode && <span class="chip">{mode}</span>} <span class="quiet">{rules.length > 0 && `${rules.length} rules`}</span>{' '}
        {isStopped && <Status text="the proxy does not run" tone="bad" />}
        {missing > 0 && <Status text={`${missing} are not in the kernel`} tone="bad" />}
      </summary>
      {error && <p class="quiet">{error}</p>}
      <ol>
        {rules.map((rule, index) => (
          <Rule key={`${index} ${rule.place}`} rule={rule} />
        ))}
      </ol>
    </details>
  )
}

function Rule({ rule: { place, lines, connections } }: { readonly rule: ServiceRuleText }) {
  return (
    <li>
      <p>
        <code>{place}</code> {connections !== undefined && <span class="chip">{connections} connections</span>}
      </p>
      {lines === undefined ? <p class="warning">The proxy wants this rule, and the kernel does not have it.</p> : <pre>{lines.join('\n')}</pre>}
    </li>
  )
}
