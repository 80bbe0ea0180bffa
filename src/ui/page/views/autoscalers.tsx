/** HorizontalPodAutoscalers (L4), live: where they are between their bounds, and what they see. */
import { type Autoscaler as AutoscalerObject, type AutoscalerRow, autoscalerRow } from '../../model/autoscalers.ts'
import { listPath, objectPlace } from '../../model/places.ts'
import { type ListedObject, useLiveObjects } from '../live.ts'
import { kindNamed, namespace } from '../state.ts'

const resource = { group: 'autoscaling', version: 'v2', resource: 'horizontalpodautoscalers' }

export function Autoscalers() {
  const live = useLiveObjects<AutoscalerObject & ListedObject>(listPath(resource, namespace.value))
  const rows = [...live.items.value.values()].map(autoscalerRow)
  return (
    <section class="panel" aria-label="Autoscalers">
      <h2>Autoscalers</h2>
      {live.state.value === 'failed' && <p class="quiet">{live.error.value}</p>}
      {rows.length === 0 && live.state.value === 'live' && <p class="quiet">none</p>}
      {rows.map((row) => (
        <Autoscaler key={`${row.namespace}/${row.name}`} row={row} />
      ))}
    </section>
  )
}

function Autoscaler({ row: { namespace: ns, name, target, least, most, current, desired, metrics } }: { readonly row: AutoscalerRow }) {
  const kind = kindNamed('horizontalpodautoscalers.autoscaling')
  const text = `${current} replicas, ${desired} wanted, between ${least} and ${most}`
  return (
    <div class="gauge">
      <span>
        {kind ? <a href={objectPlace(kind, { namespace: ns, name }, 'why')}>{`${ns}/${name}`}</a> : `${ns}/${name}`} <span class="quiet">{target}</span>
      </span>
      <div class="meter" role="img" aria-label={text}>
        <i class={current >= most ? 'bad' : current === desired ? 'good' : 'busy'} style={{ width: `${(100 * current) / Math.max(1, most)}%` }} />
      </div>
      <span>
        {current === desired ? current : `${current} → ${desired}`} of {most} <span class="quiet">{metrics.join(', ')}</span>
      </span>
    </div>
  )
}
