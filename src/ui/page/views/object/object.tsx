/** One object (L4): its parts as tabs, and what can be done with it. */

import type { ComponentType } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { type Kind, listPath, listPlace, type ObjectName, objectPlace } from '../../../model/places.ts'
import { isExplained } from '../../../model/whyTargets.ts'
import { useKeys } from '../../keys.ts'
import { useLiveObjects } from '../../live.ts'
import { Empty, Failure, Icon, Loading, Status } from '../../parts/basics.tsx'
import { lazy } from '../../parts/lazy.tsx'
import { go } from '../../state.ts'
import { ObjectActions } from './actions.tsx'
import { EventsTab } from './events.tsx'
import { HistoryTab } from './history.tsx'
import { RelatedTab } from './related.tsx'
import { SummaryTab } from './summary.tsx'
import type { AnyObject, TabProps } from './types.ts'
import { WhyTab } from './why.tsx'

interface Tab {
  readonly path: string
  readonly title: string
  readonly component: ComponentType<TabProps>
  /** Absent: every kind has it. */
  readonly isOf?: (kind: Kind, object: AnyObject | undefined) => boolean
}

const isPod = ({ group, resource }: Kind) => group === '' && resource === 'pods'
const withPods = new Set(['deployments', 'replicasets', 'statefulsets', 'daemonsets', 'jobs'])

const tabs: readonly Tab[] = [
  { path: 'summary', title: 'Summary', component: SummaryTab },
  { path: 'yaml', title: 'YAML', component: lazy(() => import('./yaml.tsx').then(({ YamlTab }) => YamlTab)) },
  { path: 'events', title: 'Events', component: EventsTab },
  { path: 'why', title: 'Why', component: WhyTab, isOf: isExplained },
  {
    path: 'logs',
    title: 'Logs',
    component: lazy(() => import('./logs.tsx').then(({ LogsTab }) => LogsTab)),
    isOf: (kind) => isPod(kind) || withPods.has(kind.resource),
  },
  { path: 'shell', title: 'Shell', component: lazy(() => import('./shell.tsx').then(({ ShellTab }) => ShellTab)), isOf: isPod },
  { path: 'files', title: 'Files', component: lazy(() => import('./files.tsx').then(({ FilesTab }) => FilesTab)), isOf: isPod },
  { path: 'trace', title: 'Trace', component: lazy(() => import('./trace.tsx').then(({ TraceTab }) => TraceTab)) },
  {
    path: 'rules',
    title: 'Rules',
    component: lazy(() => import('./rules.tsx').then(({ RulesTab }) => RulesTab)),
    isOf: ({ group, resource }) => group === '' && resource === 'services',
  },
  {
    path: 'calls',
    title: 'Calls',
    component: lazy(() => import('./calls.tsx').then(({ CallsTab }) => CallsTab)),
    isOf: (kind) => isPod(kind) || (kind.group === '' && kind.resource === 'persistentvolumeclaims'),
  },
  { path: 'related', title: 'Related', component: RelatedTab },
  { path: 'history', title: 'History', component: HistoryTab },
]

export function ObjectView({ kind, name, tab: wanted }: { readonly kind: Kind; readonly name: ObjectName; readonly tab: string }) {
  const live = useLiveObjects<AnyObject>(`${listPath(kind, name.namespace)}?fieldSelector=${encodeURIComponent(`metadata.name=${name.name}`)}`)
  const [object] = live.items.value.values()
  const shown = tabs.filter(({ isOf }) => isOf?.(kind, object) ?? true)
  const tab = shown.find(({ path }) => path === wanted) ?? shown[0]
  useKeys([
    ...shown.slice(0, 9).map(({ path, title }, index) => ({ key: String(index + 1), text: title, act: () => go(objectPlace(kind, name, path)) })),
    { key: 'u', text: `all ${kind.resource}`, act: () => go(listPlace(kind)) },
  ])
  const bar = useTabInSight(tab?.path)
  if (live.state.value === 'failed') return <Failure text={live.error.value} />
  return (
    <section class="object">
      <header class="bar">
        <h1>
          <a href={listPlace(kind)}>{kind.kind}</a>
          <span class="name">{name.name}</span>
        </h1>
        {object && <Headline object={object} />}
        {live.state.value === 'reconnecting' && <span class="mark reconnecting">connecting again</span>}
        {object && <ObjectActions kind={kind} name={name} object={object} />}
      </header>
      <nav ref={bar} class="tabs" aria-label="Parts of the object">
        {shown.map(({ path, title }) => (
          <a key={path} href={objectPlace(kind, name, path)} aria-current={path === tab?.path ? 'page' : undefined}>
            {title}
          </a>
        ))}
      </nav>
      {object && tab ? (
        <tab.component key={`${object.metadata.uid}/${tab.path}`} kind={kind} name={name} object={object} />
      ) : live.state.value === 'loading' ? (
        <Loading />
      ) : (
        <Gone kind={kind} name={name} />
      )}
    </section>
  )
}

/** Scrolls the bar of a phone to the part that is shown. */
function useTabInSight(path: string | undefined) {
  const bar = useRef<HTMLElement>(null)
  useEffect(() => {
    const shown = bar.current?.querySelector<HTMLElement>('[aria-current]')
    if (bar.current && shown) bar.current.scrollLeft = shown.offsetLeft - (bar.current.clientWidth - shown.offsetWidth) / 2
  }, [path])
  return bar
}

function Headline({ object: { metadata, status } }: { readonly object: AnyObject }) {
  const text = metadata.deletionTimestamp !== undefined ? 'Terminating' : status?.phase
  return (
    <>
      {metadata.namespace && <span class="chip">{metadata.namespace}</span>}
      {text && <Status text={text} />}
    </>
  )
}

/** A deleted object still has a history. */
function Gone({ kind, name }: { readonly kind: Kind; readonly name: ObjectName }) {
  return (
    <>
      <Empty title={`${name.name} does not exist`}>
        <p>It was deleted, or it was not created yet. The page shows it as soon as it is there.</p>
        <a href={listPlace(kind)}>
          <Icon name="list" /> all {kind.resource}
        </a>
      </Empty>
      <HistoryTab kind={kind} name={name} />
    </>
  )
}
