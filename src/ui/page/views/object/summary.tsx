/** What an object is and how it is (L4): conditions, containers, capacity, labels, its owner and the writers of its fields. */
import { useState } from 'preact/hooks'
import { quantityAsNumber } from '#api/machinery/quantity'
import { fieldOwners } from '../../../model/fieldOwners.ts'
import { objectPlace } from '../../../model/places.ts'
import { Age, Facts, Status } from '../../parts/basics.tsx'
import { kindNamed, kindOfObject } from '../../state.ts'
import { Ports } from './ports.tsx'
import type { AnyObject, Condition, Container, ContainerStatus, TabProps } from './types.ts'

export function SummaryTab({ kind, object }: TabProps) {
  const { metadata, spec, status } = object
  const containers = spec?.containers
  return (
    <div class="summary">
      <section class="panel" aria-label="About">
        <Facts
          facts={[
            ['Created', <Age key="age" since={metadata.creationTimestamp} />],
            ['Node', spec?.nodeName && <NodeLink name={spec.nodeName} />],
            ['Owner', metadata.ownerReferences?.length ? <Owners object={object} /> : undefined],
            ['Replicas', spec?.replicas === undefined ? undefined : `${String(status?.readyReplicas ?? 0)} of ${spec.replicas} ready`],
            ['Addresses', addressesOf(object)],
            ['Finalizers', metadata.finalizers?.join(', ')],
            ['Generation', metadata.generation === undefined ? undefined : String(metadata.generation)],
            ['Revision', metadata.resourceVersion],
            ['UID', <code key="uid">{metadata.uid}</code>],
          ]}
        />
      </section>
      {status?.conditions && <Conditions conditions={status.conditions} />}
      {containers && (
        <Containers
          containers={[...(spec?.initContainers ?? []), ...containers]}
          statuses={[...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]}
        />
      )}
      <Ports kind={kind} object={object} />
      {status?.capacity && <Capacity capacity={status.capacity} allocatable={status.allocatable ?? {}} />}
      <Labels title="Labels" values={metadata.labels} />
      <Labels title="Annotations" values={metadata.annotations} />
      <Writers object={object} />
    </div>
  )
}

function NodeLink({ name }: { readonly name: string }) {
  const kind = kindNamed('nodes')
  return kind ? <a href={objectPlace(kind, { namespace: '', name })}>{name}</a> : <span>{name}</span>
}

function addressesOf({ status, spec }: AnyObject): string | undefined {
  const addresses = status?.addresses as readonly { readonly address: string }[] | undefined
  return (status?.podIP as string | undefined) ?? (spec?.clusterIP as string | undefined) ?? addresses?.map(({ address }) => address).join(', ')
}

function Owners({ object: { metadata } }: { readonly object: AnyObject }) {
  return (
    <>
      {metadata.ownerReferences?.map(({ kind, name, uid, apiVersion }) => {
        const known = kindOfObject(kind, apiVersion)
        const text = `${kind} ${name}`
        return known ? (
          <a key={uid} href={objectPlace(known, { namespace: known.namespaced ? (metadata.namespace ?? '') : '', name })}>
            {text}
          </a>
        ) : (
          <span key={uid}>{text}</span>
        )
      })}
    </>
  )
}

/** Conditions that say something is wrong when they are true. */
const badWhenTrue = /Pressure$|Unavailable$|Failure|Failed|Stalled|Degraded|NamesConflict|Remaining$/

function Conditions({ conditions }: { readonly conditions: readonly Condition[] }) {
  return (
    <section class="panel" aria-label="Conditions">
      <h2>Conditions</h2>
      <ul class="conditions">
        {conditions.map(({ type, status, reason, message, lastTransitionTime }) => {
          const isFine = (status === 'True') !== badWhenTrue.test(type)
          return (
            <li key={type}>
              <Status text={type} tone={status === 'Unknown' ? 'busy' : isFine ? 'good' : 'bad'} />
              <span class="quiet">{status}</span>
              <span>{reason}</span>
              <span class="why">{message}</span>
              <span class="when">
                <Age since={lastTransitionTime} />
              </span>
            </li>
          )
        })}
      </ul>
    </section>
  )
}

function Containers({ containers, statuses }: { readonly containers: readonly Container[]; readonly statuses: readonly ContainerStatus[] }) {
  return (
    <section class="panel" aria-label="Containers">
      <h2>Containers</h2>
      <ul class="containers">
        {containers.map(({ name, image, resources, ports }) => {
          const status = statuses.find((one) => one.name === name)
          const [state = 'waiting', details] = Object.entries(status?.state ?? {})[0] ?? []
          const text = details?.reason ?? state
          return (
            <li key={name}>
              <strong>{name}</strong>
              <Status
                text={text === 'running' ? 'Running' : text}
                tone={status?.ready ? 'good' : text === 'Completed' ? 'quiet' : state === 'running' ? 'busy' : undefined}
              />
              <code>{image}</code>
              {(status?.restartCount ?? 0) > 0 && <span>restarted {status?.restartCount} times</span>}
              <span class="quiet">{[...Object.entries(resources?.requests ?? {})].map(([key, value]) => `${key} ${value}`).join(', ')}</span>
              <span class="quiet">{ports?.map(({ containerPort, protocol }) => `${containerPort}/${protocol ?? 'TCP'}`).join(', ')}</span>
              {details?.message && <span class="why">{details.message}</span>}
            </li>
          )
        })}
      </ul>
    </section>
  )
}

const shownResources = ['cpu', 'memory', 'pods', 'ephemeral-storage']

function Capacity({ capacity, allocatable }: { readonly capacity: Readonly<Record<string, string>>; readonly allocatable: Readonly<Record<string, string>> }) {
  return (
    <section class="panel" aria-label="Capacity">
      <h2>Capacity</h2>
      {shownResources.map((name) => {
        const [all = '0', usable = all] = [capacity[name], allocatable[name]]
        const share = quantityAsNumber(all) === 0 ? 0 : quantityAsNumber(usable) / quantityAsNumber(all)
        return (
          <div key={name} class="gauge">
            <span>{name}</span>
            <div class="meter" role="img" aria-label={`${usable} of ${all} for pods`}>
              <i class="good" style={{ width: `${100 * share}%` }} />
            </div>
            <span>
              {usable} <span class="quiet">of {all} for pods</span>
            </span>
          </div>
        )
      })}
    </section>
  )
}

function Labels({ title, values }: { readonly title: string; readonly values: Readonly<Record<string, string>> | undefined }) {
  const entries = Object.entries(values ?? {})
  if (entries.length === 0) return null
  return (
    <section class="panel" aria-label={title}>
      <h2>{title}</h2>
      <ul class="labels">
        {entries.map(([key, value]) => (
          <li key={key}>
            <span class="quiet">{key}</span>
            <span>{value}</span>
          </li>
        ))}
      </ul>
    </section>
  )
}

function Writers({ object }: { readonly object: AnyObject }) {
  const [open, setOpen] = useState(-1)
  const owners = fieldOwners(object.metadata.managedFields ?? [])
  if (owners.length === 0) return null
  return (
    <section class="panel" aria-label="Writers of fields">
      <h2>Writers of fields</h2>
      <ul class="writers">
        {owners.map(({ manager, how, time, paths }, index) => (
          <li key={`${manager}/${how}/${time}`}>
            <button type="button" aria-expanded={open === index} onClick={() => setOpen(open === index ? -1 : index)}>
              <i class={`color c${index % 6}`} aria-hidden="true" />
              <strong>{manager}</strong> <span class="quiet">{how}</span> {paths.length} fields <Age since={time} />
            </button>
            {open === index && <pre>{paths.join('\n')}</pre>}
          </li>
        ))}
      </ul>
    </section>
  )
}
