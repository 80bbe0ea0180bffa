/** The explanations with facts of their own (L4): what is left in a namespace that is being deleted, and the sum behind an autoscaler's replicas. */
import { objectPlace } from '../../../model/places.ts'
import { Age, Facts, Status } from '../../parts/basics.tsx'
import { kindNamed } from '../../state.ts'

interface Condition {
  readonly type: string
  readonly status?: string
  readonly message: string
}

export interface NamespaceFacts {
  readonly namespace: string
  readonly phase: string
  readonly finalizers: readonly string[]
  readonly conditions: readonly Condition[]
  readonly remaining: readonly {
    readonly resource: string
    readonly count: number
    readonly objects: readonly { readonly name: string; readonly finalizers: readonly string[]; readonly deletedAt?: string }[]
  }[]
  readonly silentGroups: readonly string[]
}

export function NamespacePanel({ value: { namespace, phase, finalizers, conditions, remaining, silentGroups } }: { readonly value: NamespaceFacts }) {
  const isEnding = phase === 'Terminating'
  return (
    <section class="panel explanation" aria-label="Explanation">
      <p class="verdict">
        <Status text={isEnding ? 'waits' : 'does not wait'} tone={isEnding ? 'bad' : 'good'} />
        <span>{isEnding ? 'it is being deleted' : `its phase is ${phase}, and it is not being deleted`}</span>
      </p>
      {isEnding && (
        <>
          <Facts
            facts={[
              ['Finalizers', finalizers.join(', ')],
              ['API groups that do not answer', silentGroups.join(', ')],
            ]}
          />
          <Conditions conditions={conditions} />
          <ul class="left" aria-label="What is left">
            {remaining.flatMap(({ resource, count, objects }) => [
              ...objects.map((one) => (
                <li key={`${resource}/${one.name}`}>
                  <span class="quiet">{resource}</span>
                  <LeftObject resource={resource} namespace={namespace} name={one.name} />
                  <span>{one.finalizers.join(', ')}</span>
                  <DeletedAt time={one.deletedAt} />
                </li>
              )),
              ...(count > objects.length
                ? [
                    <li key={`${resource} rest`} class="quiet">
                      and {count - objects.length} more {resource}
                    </li>,
                  ]
                : []),
            ])}
          </ul>
          {remaining.length === 0 && <p class="quiet">Nothing that you may list is left in it.</p>}
        </>
      )}
    </section>
  )
}

function DeletedAt({ time }: { readonly time: string | undefined }) {
  if (time === undefined) return <span class="quiet">not deleted yet</span>
  return (
    <span class="quiet">
      deleted <Age since={time} /> ago
    </span>
  )
}

function LeftObject({ resource, namespace, name }: { readonly resource: string; readonly namespace: string; readonly name: string }) {
  const kind = kindNamed(resource)
  return kind ? <a href={objectPlace(kind, { namespace, name }, 'why')}>{name}</a> : <span>{name}</span>
}

export interface AutoscalerFacts {
  readonly target: string
  readonly minReplicas: number
  readonly maxReplicas: number
  readonly currentReplicas: number
  readonly desiredReplicas: number
  readonly lastScaleTime?: string
  readonly metrics: readonly {
    readonly metric: string
    readonly target: string
    readonly current?: string
    readonly ratio?: number
    readonly replicas?: number
  }[]
  readonly unchanged: { readonly from: number; readonly to: number }
  readonly conditions: readonly Condition[]
  readonly pods?: { readonly count: number; readonly ready: number }
}

export function AutoscalerPanel({ value }: { readonly value: AutoscalerFacts }) {
  const { target, minReplicas, maxReplicas, currentReplicas, desiredReplicas, lastScaleTime, metrics, unchanged, conditions, pods } = value
  return (
    <section class="panel explanation" aria-label="Explanation">
      <Facts
        facts={[
          ['Target', target],
          ['Bounds', `${minReplicas} to ${maxReplicas} replicas`],
          ['Replicas', `${currentReplicas} at the last sum, ${desiredReplicas} wanted`],
          ['Pods', pods && `${pods.ready} of ${pods.count} ready`],
          ['Last change', lastScaleTime && <Age key="change" since={lastScaleTime} />],
          ['No change', `between ${unchanged.from} and ${unchanged.to} times the target`],
        ]}
      />
      <div class="matrix" tabIndex={0}>
        <table aria-label="Metrics">
          <thead>
            <tr>
              {['Metric', 'Target', 'Value', 'Ratio', 'Replicas'].map((title) => (
                <th key={title} scope="col">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {metrics.map(({ metric, target: wanted, current, ratio, replicas }, index) => (
              <tr key={`${index} ${metric}`}>
                <th scope="row">{metric}</th>
                <td>{wanted}</td>
                <td>{current ?? <span class="quiet">no value</span>}</td>
                <td>{ratio?.toFixed(2)}</td>
                <td>{replicas}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Conditions conditions={conditions} />
    </section>
  )
}

function Conditions({ conditions }: { readonly conditions: readonly Condition[] }) {
  if (conditions.length === 0) return null
  return (
    <ul class="reported" aria-label="Conditions">
      {conditions.map(({ type, status, message }) => (
        <li key={type}>
          <strong>{type}</strong> {status && <span class="chip">{status}</span>}
          <span>{message}</span>
        </li>
      ))}
    </ul>
  )
}
