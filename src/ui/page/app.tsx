/** The frame around all views (L4): the place, the ways to other places, and the user. */
import { useSignal } from '@preact/signals'
import type { ComponentType } from 'preact'
import { useEffect } from 'preact/hooks'
import { ownValue } from '#base/bareMap'
import { type Kind, listPath, listPlace, nameOfKind, placeText } from '../model/places.ts'
import { activeBindings, useKeys } from './keys.ts'
import { useLiveTable } from './live.ts'
import { Dialog, Empty, Failure, Icon, Loading } from './parts/basics.tsx'
import { OpenQuestion } from './parts/confirm.tsx'
import { Goto, gotoOpen } from './parts/goto.tsx'
import { lazy } from './parts/lazy.tsx'
import { type Facts, isStill, logout, session } from './session.ts'
import {
  dismiss,
  followClock,
  go,
  isNarrow,
  kindNamed,
  kinds,
  kindsError,
  loadKinds,
  lookForSimulatedNodes,
  messages,
  namespace,
  place,
  set,
  theme,
} from './state.ts'
import { Access } from './views/access.tsx'
import { ListView } from './views/list.tsx'
import { ObjectView } from './views/object/object.tsx'
import { Overview } from './views/overview.tsx'
import { Past } from './views/past.tsx'
import { Scheduling } from './views/scheduling.tsx'
import { offeredViews } from './views.ts'

const components: Readonly<Record<string, ComponentType>> = {
  ...{ overview: Overview, scheduling: Scheduling, past: Past, access: Access },
  live: lazy(() => import('./views/live/live.tsx').then(({ LiveView }) => LiveView)),
  controllers: lazy(() => import('./views/controllers.tsx').then(({ Controllers }) => Controllers)),
  capacity: lazy(() => import('./views/capacity.tsx').then(({ Capacity }) => Capacity)),
  usage: lazy(() => import('./views/usage.tsx').then(({ UsageView }) => UsageView)),
  helm: lazy(() => import('./views/helm.tsx').then(({ Helm }) => Helm)),
  chaos: lazy(() => import('./views/chaos/chaos.tsx').then(({ ChaosView }) => ChaosView)),
  store: lazy(() => import('./views/store.tsx').then(({ StoreView }) => StoreView)),
}

export function App() {
  const [isHelpOpen, isMenuOpen] = [useSignal(false), useSignal(false)]
  const namespaces = useLiveTable(listPath({ group: '', version: 'v1', resource: 'namespaces' }))
  const names = [...namespaces.items.value.values()].map(({ object }) => object.metadata.name ?? '').sort()
  useEffect(() => {
    void loadKinds()
    if (isStill()) return
    void lookForSimulatedNodes()
    void followClock()
  }, [])
  useKeys([
    { key: 'g', text: 'go to a kind, a view or a namespace', act: () => set(gotoOpen, true) },
    { key: '?', text: 'this help', act: () => set(isHelpOpen, true) },
    { key: 'o', text: 'overview', act: () => go(placeText(['overview'])) },
    { key: 't', text: 'light or dark', act: toggleTheme },
  ])
  useEffect(() => {
    isMenuOpen.value = false
    document.title = titleOf(place.value.path, session.value)
  }, [place.value])
  // A user without the right to list namespaces begins in one of them.
  useEffect(() => {
    if (namespaces.state.value === 'failed' && namespace.peek() === '' && typeof session.value === 'object') namespace.value = session.value.cluster.namespace
  }, [namespaces.state.value])
  return (
    <div class={isMenuOpen.value ? 'frame open' : 'frame'}>
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to the content
      </button>
      <TopBar names={names} onMenu={() => set(isMenuOpen, !isMenuOpen.value)} onHelp={() => set(isHelpOpen, true)} />
      {(!isNarrow.value || isMenuOpen.value) && <SideBar />}
      <main id="main" tabIndex={0}>
        {kinds.value.length > 0 ? <CurrentView /> : kindsError.value === '' ? <Loading /> : <Failure text={kindsError.value} retry={() => void loadKinds()} />}
      </main>
      {gotoOpen.value && <Goto namespaces={names} />}
      {isHelpOpen.value && <Help onClose={() => set(isHelpOpen, false)} />}
      <OpenQuestion />
      <Messages />
    </div>
  )
}

function titleOf(path: readonly string[], facts: Facts | string): string {
  const cluster = typeof facts === 'string' ? '' : facts.cluster.name
  const [view = 'overview', kindName, , name] = path
  return `${name ?? kindName ?? view} – ${cluster} – Skiff`
}

function CurrentView() {
  const { path } = place.value
  const [view = 'overview', kindName = '', ns = '-', name = '', tab = 'summary'] = path
  const kind = kindNamed(kindName)
  if ((view === 'list' || view === 'object') && !kind) return <Failure text={`The cluster has no ${kindName}.`} retry={() => void loadKinds()} />
  if (view === 'list' && kind) return <ListView key={kindName} kind={kind} />
  if (view === 'object' && kind) {
    const object = { namespace: ns === '-' ? '' : ns, name }
    return <ObjectView key={`${kindName}/${ns}/${name}`} kind={kind} name={object} tab={tab} />
  }
  const View = ownValue(components, view)
  return View ? <View key={namespace.value} /> : <UnknownPlace path={path} />
}

function UnknownPlace({ path }: { readonly path: readonly string[] }) {
  return (
    <Empty title={`This page has no view ${path.join('/')}`}>
      <p>The address is mistyped, or of another version of the page.</p>
      <a href={placeText(['overview'])}>Overview</a>
    </Empty>
  )
}

function toggleTheme(): void {
  const isDark = theme.value === 'dark' || (theme.value === 'system' && matchMedia('(prefers-color-scheme: dark)').matches)
  theme.value = isDark ? 'light' : 'dark'
}

interface TopBarProps {
  readonly names: readonly string[]
  readonly onMenu: () => void
  readonly onHelp: () => void
}

function TopBar({ names, onMenu, onHelp }: TopBarProps) {
  const facts = session.value
  if (typeof facts === 'string') return null
  return (
    <header class="top">
      <button type="button" class="icon menu" aria-label="Menu" onClick={onMenu}>
        <Icon name="list" />
      </button>
      <a class="brand" href={placeText(['overview'])} title={facts.cluster.server}>
        <Icon name="boat" />
        <strong>{facts.cluster.name}</strong>
      </a>
      <select aria-label="Namespace" value={namespace.value} onChange={({ currentTarget }) => set(namespace, currentTarget.value)}>
        <option value="">all namespaces</option>
        {(namespace.value === '' || names.includes(namespace.value) ? names : [namespace.value, ...names]).map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      <button type="button" class="goto-button" onClick={() => set(gotoOpen, true)}>
        <Icon name="search" /> <span>Go to…</span> <kbd>g</kbd>
      </button>
      <span class="user" title={facts.groups.join(', ')}>
        {facts.user}
      </span>
      <button type="button" class="icon" aria-label="Light or dark" title="Light or dark (t)" onClick={toggleTheme}>
        <Icon name="sun" />
      </button>
      <button type="button" class="icon help" aria-label="Keys" title="Keys (?)" onClick={onHelp}>
        <Icon name="help" />
      </button>
      <button type="button" class="icon" aria-label="Log out" title="Log out" onClick={() => void logout()}>
        <Icon name="out" />
      </button>
    </header>
  )
}

/** The kinds that people look for, in groups; all others stand in the last one. */
const sections: readonly { readonly title: string; readonly resources: readonly string[] }[] = [
  {
    title: 'Workloads',
    resources: [
      'pods',
      'deployments.apps',
      'statefulsets.apps',
      'daemonsets.apps',
      'replicasets.apps',
      'jobs.batch',
      'cronjobs.batch',
      'horizontalpodautoscalers.autoscaling',
    ],
  },
  { title: 'Network', resources: ['services', 'ingresses.networking.k8s.io', 'endpointslices.discovery.k8s.io', 'networkpolicies.networking.k8s.io'] },
  { title: 'Configuration', resources: ['configmaps', 'secrets', 'serviceaccounts', 'resourcequotas', 'limitranges', 'poddisruptionbudgets.policy'] },
  { title: 'Storage', resources: ['persistentvolumeclaims', 'persistentvolumes', 'storageclasses.storage.k8s.io'] },
  { title: 'Cluster', resources: ['nodes', 'namespaces', 'events', 'customresourcedefinitions.apiextensions.k8s.io', 'leases.coordination.k8s.io'] },
  {
    title: 'Access control',
    resources: [
      'roles.rbac.authorization.k8s.io',
      'rolebindings.rbac.authorization.k8s.io',
      'clusterroles.rbac.authorization.k8s.io',
      'clusterrolebindings.rbac.authorization.k8s.io',
    ],
  },
]
const sorted = new Set(sections.flatMap(({ resources }) => resources))

function SideBar() {
  const [view = 'overview'] = place.value.path
  const others = kinds.value.filter((kind) => !sorted.has(nameOfKind(kind)))
  return (
    <nav class="sidebar" aria-label="Views and kinds">
      <ul>
        {offeredViews().map(({ path, title, icon }) => (
          <li key={title}>
            <a href={placeText(path)} aria-current={path[0] === view ? 'page' : undefined}>
              <Icon name={icon} /> {title}
            </a>
          </li>
        ))}
      </ul>
      {sections.map(({ title, resources }) => (
        <KindSection key={title} title={title} kinds={resources.flatMap((name) => kindNamed(name) ?? [])} isOpen />
      ))}
      <KindSection title="Everything else" kinds={others} isOpen={false} />
    </nav>
  )
}

function KindSection({ title, kinds: all, isOpen }: { readonly title: string; readonly kinds: readonly Kind[]; readonly isOpen: boolean }) {
  const [view, current] = place.value.path
  const hasCurrent = (view === 'list' || view === 'object') && all.some((kind) => nameOfKind(kind) === current)
  if (all.length === 0) return null
  return (
    <details open={isOpen || hasCurrent}>
      <summary>{title}</summary>
      <ul>
        {all.map((kind) => (
          <li key={nameOfKind(kind)}>
            <a href={listPlace(kind)} title={nameOfKind(kind)} aria-current={hasCurrent && nameOfKind(kind) === current ? 'page' : undefined}>
              {kind.kind}
            </a>
          </li>
        ))}
      </ul>
    </details>
  )
}

function Help({ onClose }: { readonly onClose: () => void }) {
  const unique = new Map(activeBindings().map((binding) => [binding.key, binding]))
  return (
    <Dialog title="Keys" class="help" onClose={onClose}>
      <dl class="keys">
        {[...unique.values()].map(({ key, text }) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>Esc</kbd>
          </dt>
          <dd>close, or leave a field</dd>
        </div>
      </dl>
    </Dialog>
  )
}

function Messages() {
  return (
    <div class="messages" role="status">
      {messages.value.map(({ id, tone, text }) => (
        <p key={id} class={tone}>
          {text}
          <button type="button" class="icon" aria-label="Dismiss" onClick={() => dismiss(id)}>
            <Icon name="close" />
          </button>
        </p>
      ))}
    </div>
  )
}
