/** Logs of a pod, or of the pods of a workload (L4): followed, searched, bounded; only the lines in sight are in the document. */
import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { isOfFirstRun, LogLines, logKeyOf, piecesOf, podsPathOf, podsResource, waitingLogKeyOf } from '../../../model/logs.ts'
import { objectPath } from '../../../model/places.ts'
import { get, isRefusal, openSocket, refusedAgainMs } from '../../api.ts'
import { useKeys } from '../../keys.ts'
import { useLiveObjects } from '../../live.ts'
import { Empty, Failure, Icon, Loading } from '../../parts/basics.tsx'
import { set } from '../../state.ts'
import type { AnyObject, Container, TabProps } from './types.ts'

const mostPods = 20
const mostLines = 200_000
const lineHeight = 18

export function LogsTab({ kind, name, object }: TabProps) {
  if (kind.resource === 'pods') return <LogsOf pods={[object]} />
  const path = podsPathOf(name.namespace, object.spec?.selector)
  return path === undefined ? <Empty title="It selects no pods" /> : <LogsOfPods path={path} />
}

/** The pods come and go with a rollout, and their logs with them. */
function LogsOfPods({ path }: { readonly path: string }) {
  const { items, state, error } = useLiveObjects<AnyObject>(path)
  const found = [...items.value.values()]
  if (state.value === 'failed') return <Failure text={error.value} />
  if (state.value === 'loading') return <Loading />
  return found.length === 0 ? <Empty title="It has no pods" /> : <LogsOf pods={newestFirst(found).slice(0, mostPods)} total={found.length} />
}

const newestFirst = (pods: readonly AnyObject[]) =>
  [...pods].sort((one, other) => (other.metadata.creationTimestamp ?? '').localeCompare(one.metadata.creationTimestamp ?? ''))

function containersOf({ spec }: AnyObject): readonly Container[] {
  return [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])]
}

function LogsOf({ pods: all, total }: { readonly pods: readonly AnyObject[]; readonly total?: number }) {
  const isOfWorkload = total !== undefined
  const names = [...new Set(all.flatMap(containersOf).map(({ name }) => name))]
  const [container, search, only, isFollowing, previous] = [useSignal(names[0] ?? ''), useSignal(''), useSignal(false), useSignal(true), useSignal(false)]
  const field = useRef<HTMLInputElement>(null)
  const log = useLog(all, { container: container.value, previous: previous.value, isOfWorkload })
  useKeys([
    { key: '/', text: 'search in the log', act: () => field.current?.focus() },
    { key: 'f', text: 'follow the log', act: () => set(isFollowing, !isFollowing.value) },
  ])
  const wanted = search.value.toLowerCase()
  const lines = useMemo(
    () => (only.value && wanted !== '' ? log.lines.filter((line) => line.toLowerCase().includes(wanted)) : log.lines),
    [log.lines, only.value, wanted],
  )
  return (
    <section class="logs" aria-label="Logs">
      <div class="bar">
        <label class="search">
          <Icon name="search" />
          <input
            ref={field}
            type="search"
            aria-label="Search in the log"
            placeholder="Search   /"
            value={search.value}
            onInput={({ currentTarget }) => set(search, currentTarget.value)}
          />
        </label>
        <label>
          <input type="checkbox" checked={only.value} onChange={({ currentTarget }) => set(only, currentTarget.checked)} /> only these lines
        </label>
        <label>
          <input type="checkbox" checked={isFollowing.value} onChange={({ currentTarget }) => set(isFollowing, currentTarget.checked)} /> follow
        </label>
        <label>
          <input type="checkbox" checked={previous.value} onChange={({ currentTarget }) => set(previous, currentTarget.checked)} /> before the restart
        </label>
        {names.length > 1 && (
          <select aria-label="Container" value={container.value} onChange={({ currentTarget }) => set(container, currentTarget.value)}>
            {names.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        )}
        <span class="count" role="status">
          {isOfWorkload && total > all.length && `${all.length} of ${total} pods, the newest: `}
          {lines.length} lines{log.dropped > 0 && `, ${log.dropped} older ones dropped`}
        </span>
      </div>
      {log.error !== '' && <p class="warning">{log.error}</p>}
      <LogText lines={lines} search={search.value} isFollowing={isFollowing.value} onScrolledUp={() => set(isFollowing, false)} />
    </section>
  )
}

interface LogTextProps {
  readonly lines: readonly string[]
  readonly search: string
  readonly isFollowing: boolean
  readonly onScrolledUp: () => void
}

function LogText({ lines, search, isFollowing, onScrolledUp }: LogTextProps) {
  const element = useRef<HTMLDivElement>(null)
  const top = useSignal(0)
  // Before the browser reports a scroll: lines that were dropped move the text up, and with more lines below it that would look like a reader who scrolls up.
  useLayoutEffect(() => {
    if (isFollowing && element.current) element.current.scrollTop = element.current.scrollHeight
  }, [lines, isFollowing])
  const first = Math.max(0, Math.floor(top.value / lineHeight) - 20)
  const shown = lines.slice(first, first + Math.ceil((element.current?.clientHeight ?? 800) / lineHeight) + 40)
  return (
    <div
      ref={element}
      class="log"
      role="log"
      aria-label="Log"
      tabIndex={0}
      onScroll={({ currentTarget }) => {
        const isUp = currentTarget.scrollTop < top.value && currentTarget.scrollTop + currentTarget.clientHeight < currentTarget.scrollHeight - lineHeight
        top.value = currentTarget.scrollTop
        if (isUp) onScrolledUp()
      }}
    >
      <div style={{ height: `${lines.length * lineHeight}px` }}>
        <pre style={{ transform: `translateY(${first * lineHeight}px)` }}>
          {shown.map((line, index) => (
            <div key={first + index}>{piecesOf(line, search).map(({ text, isFound }, at) => (isFound ? <mark key={at}>{text}</mark> : text))}</div>
          ))}
        </pre>
      </div>
    </div>
  )
}

interface LogOptions {
  readonly container: string
  readonly previous: boolean
  /** Each line begins with its pod's name. */
  readonly isOfWorkload: boolean
}

interface Log {
  readonly lines: readonly string[]
  readonly dropped: number
  readonly error: string
}

const noLog: Log = { lines: [], dropped: 0, error: '' }

/** The lines of all pods as they come. */
function useLog(all: readonly AnyObject[], options: LogOptions): Log {
  const shown = useSignal(noLog)
  const { container, previous } = options
  const reader = useMemo(() => new LogReader(options, shown), [container, previous])
  useEffect(() => () => reader.close(), [reader])
  useEffect(() => reader.follow(all), [reader, all.map((pod) => logKeyOf(pod, container)).join()])
  return shown.value
}

/** Reads the logs of pods that come and go; the lines of those that are gone stay. */
class LogReader {
  readonly #options: LogOptions
  readonly #shown: Signal<Log>
  readonly #log = new LogLines(mostLines)
  readonly #sockets = new Map<string, WebSocket>()
  readonly #errors = new Map<string, string>()
  /** Keys of logs that have had lines. */
  readonly #begun = new Set<string>()
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(options: LogOptions, shown: Signal<Log>) {
    this.#options = options
    this.#shown = shown
  }

  follow(all: readonly AnyObject[]): void {
    const wanted = new Map(all.map((pod) => [logKeyOf(pod, this.#options.container), pod]))
    for (const [key, pod] of wanted) this.#keepBegun(key, pod)
    for (const key of this.#sockets.keys()) if (!wanted.has(key)) this.#leave(key)
    for (const [key, pod] of wanted) if (!this.#sockets.has(key)) this.#open(key, pod)
    this.#show()
  }

  /** The log of a container may begin before its pod says that it runs: it is not read a second time. */
  #keepBegun(key: string, pod: AnyObject): void {
    const before = waitingLogKeyOf(pod)
    const socket = this.#sockets.get(before)
    if (!socket || !isOfFirstRun(key) || this.#sockets.has(key) || !this.#begun.has(before)) return
    this.#sockets.delete(before)
    this.#sockets.set(key, socket)
  }

  close(): void {
    for (const key of [...this.#sockets.keys()]) this.#leave(key)
    clearTimeout(this.#timer)
  }

  #open(key: string, pod: AnyObject): void {
    const add = this.#log.from(this.#options.isOfWorkload ? `${pod.metadata.name} ` : '')
    const take = (text: string) => {
      this.#begun.add(key)
      add(text)
      this.#show()
    }
    const begin = () => {
      this.#errors.delete(key)
      this.#show()
    }
    const fail = (error: Error) => {
      if (this.#sockets.get(key) !== socket) return
      this.#errors.set(key, `${pod.metadata.name}: ${error.message}`)
      this.#show()
      if (isRefusal(error)) setTimeout(() => this.#sockets.get(key) === socket && this.#open(key, pod), refusedAgainMs)
    }
    const socket = openLog(pod, this.#options, { begin, take, fail })
    this.#sockets.set(key, socket)
  }

  #leave(key: string): void {
    this.#sockets.get(key)?.close()
    this.#sockets.delete(key)
    this.#errors.delete(key)
  }

  #show(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#shown.value = { lines: this.#log.lines, dropped: this.#log.dropped, error: [...this.#errors.values()].at(-1) ?? '' }
    }, 150)
  }
}

interface LogEvents {
  begin(): void
  take(text: string): void
  fail(error: Error): void
}

function openLog(pod: AnyObject, { container, previous }: LogOptions, { begin, take, fail }: LogEvents): WebSocket {
  const { namespace = '', name = '' } = pod.metadata
  const query = new URLSearchParams({ container, tailLines: '5000', ...(previous ? { previous: 'true' } : { follow: 'true' }) })
  const path = `${objectPath(podsResource, { namespace, name }, 'log')}?${query}`
  const socket = openSocket(path, ['binary.k8s.io'])
  socket.binaryType = 'arraybuffer'
  const decoder = new TextDecoder()
  let isOpen = false
  socket.onopen = () => {
    isOpen = true
    begin()
  }
  socket.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => {
    take(decoder.decode(data, { stream: true }))
  }
  // A WebSocket does not say why it was refused: the same request without one does.
  socket.onclose = () => {
    if (isOpen) return
    const plain = path.replace('follow=true', 'follow=false')
    void get(plain, { accept: 'text/plain' }).catch(fail)
  }
  return socket
}
