/** What all views share (L4): the place in the page, the kinds of the cluster, the theme, and messages. */
import { computed, effect, type Signal, signal } from '@preact/signals'
import { type ClockState, clockPath } from '#api/debug/clock'
import { runtimeLabel } from '#api/helpers/simulatedPods'
import { type DiscoveredGroups, type Kind, kindsOf, nameOfKind, type Place, parsePlace } from '../model/places.ts'
import { get, messageOf } from './api.ts'
import { session, stillSinceMs } from './session.ts'

/** For handlers of events. */
export function set<T>(to: Signal<T>, value: T): void {
  to.value = value
}

// The code of a login is no place.
export const place = signal<Place>(parsePlace(location.hash.startsWith('#code=') ? '' : location.hash))
addEventListener('hashchange', () => {
  place.value = parsePlace(location.hash)
})

export function go(address: string): void {
  location.hash = address
}

/** Empty: all namespaces. It stays while the user goes from view to view. */
export const namespace = signal('')
effect(() => {
  const { ns } = place.value.query
  if (ns !== undefined) namespace.value = ns === '*' ? '' : ns
})

export const kinds = signal<readonly Kind[]>([])
export const kindsError = signal('')
const byName = computed(() => new Map(kinds.value.map((kind) => [nameOfKind(kind), kind])))
export const kindNamed = (name: string): Kind | undefined => byName.value.get(name)
export const kindOfObject = (kind: string, apiVersion = ''): Kind | undefined => {
  const group = apiVersion.includes('/') ? apiVersion.split('/')[0] : apiVersion === '' ? undefined : ''
  return kinds.value.find((one) => one.kind === kind && (group === undefined || one.group === group))
}

const discoveryForm = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'

export async function loadKinds(): Promise<void> {
  try {
    const groups = await Promise.all(['/api', '/apis'].map((path) => get<DiscoveredGroups>(path, { accept: discoveryForm })))
    kinds.value = kindsOf(groups)
    kindsError.value = ''
  } catch (error) {
    kindsError.value = messageOf(error)
  }
}

/** Whether the user may see nodes that are simulated: the view of faults is offered then. */
export const hasSimulatedNodes = signal(false)

export async function lookForSimulatedNodes(): Promise<void> {
  const query = new URLSearchParams({ labelSelector: `${runtimeLabel.key}=${runtimeLabel.simulated}`, limit: '1' })
  // A user who may not list nodes has no use for the view.
  const { items } = await get<{ readonly items: readonly object[] }>(`/api/v1/nodes?${query}`).catch(() => ({ items: [] }))
  hasSimulatedNodes.value = items.length > 0
}

export type Theme = 'system' | 'light' | 'dark'
export const theme = signal<Theme>((localStorage.getItem('skiff-ui-theme') as Theme | null) ?? 'system')
effect(() => {
  localStorage.setItem('skiff-ui-theme', theme.value)
  if (theme.value === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme.value
})

const narrow = matchMedia('(max-width: 700px)')
export const isNarrow = signal(narrow.matches)
narrow.addEventListener('change', () => {
  isNarrow.value = narrow.matches
})

/** The clock, if the cluster is under virtual time and the user may read it; undefined: ages count in the machine's time. */
export const clusterClock = signal<ClockState | undefined>(undefined)
const clockEveryMs = 500
let clockTimer: ReturnType<typeof setInterval> | undefined

/** For the user who has logged in: the one before may have had other rights. */
export async function followClock(): Promise<void> {
  clearInterval(clockTimer)
  const read = () => get<ClockState>(clockPath).catch(() => undefined)
  clusterClock.value = await read()
  if (!clusterClock.value) return
  // An answer that is missing while the server restarts changes nothing.
  clockTimer = setInterval(async () => {
    if (!document.hidden && typeof session.peek() === 'object') clusterClock.value = (await read()) ?? clusterClock.value
  }, clockEveryMs)
}

const timeNow = (): number => stillSinceMs() ?? (clusterClock.value ? Date.parse(clusterClock.value.now) : Date.now())

/** The time, for ages that count on; of a bundle the time at which it was taken, and of a cluster under virtual time the cluster's. */
export const now = signal(Date.now())
effect(() => {
  now.value = timeNow()
})
setInterval(() => {
  if (!document.hidden) now.value = timeNow()
}, 1_000)

export interface Message {
  readonly id: number
  readonly tone: 'good' | 'bad'
  readonly text: string
}

export const messages = signal<readonly Message[]>([])
let lastMessage = 0

export function say(tone: Message['tone'], text: string): void {
  const id = ++lastMessage
  messages.value = [...messages.value.slice(-3), { id, tone, text }]
  setTimeout(() => dismiss(id), tone === 'good' ? 5_000 : 15_000)
}

export function dismiss(id: number): void {
  messages.value = messages.value.filter((message) => message.id !== id)
}

/** The user asked to edit: the editor takes the cursor when it is shown. */
export const wantsToEdit = signal(false)
