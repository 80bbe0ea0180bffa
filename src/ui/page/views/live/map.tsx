/** The map of the components (L4): what each does now, and a recorded request on its way, slowed down so that one sees it. */
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { type ComponentName, components, linePath, lines, type Rectangle, type Stop } from '../../../model/liveMap.ts'

export interface MapFacts {
  readonly title: string
  /** The number that counts, with its unit. */
  readonly main: string
  readonly rows: readonly (readonly [string, ComponentChildren])[]
  /** Something is done, or waits. */
  readonly isBusy: boolean
}

/** A request that is shown: its stops are lit one after the other within `playMs`. */
export interface Played {
  readonly id: string
  readonly stops: readonly Stop[]
  readonly lengthMs: number
}

export const playMs = 2_400

interface ComponentMapProps {
  readonly facts: Readonly<Record<ComponentName, MapFacts>>
  readonly played: Played | undefined
}

export function ComponentMap({ facts, played }: ComponentMapProps) {
  const host = useRef<HTMLDivElement>(null)
  const places = useSignal<Readonly<Partial<Record<ComponentName, Rectangle>>>>({})
  useLayoutEffect(() => {
    const element = host.current
    if (!element) return
    const measure = () => {
      const boxes = [...element.querySelectorAll<HTMLElement>('[data-component]')]
      places.value = Object.fromEntries(
        boxes.map((box) => [box.dataset.component ?? '', { left: box.offsetLeft, top: box.offsetTop, width: box.offsetWidth, height: box.offsetHeight }]),
      )
    }
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    // Its boxes grow with their texts.
    for (const box of element.children) observer.observe(box)
    return () => observer.disconnect()
  }, [])
  const delayOf = ({ afterMs }: Stop) => `${Math.round((afterMs / (played?.lengthMs ?? 1)) * playMs)}ms`
  const firstAt = (name: ComponentName) => played?.stops.find(({ at }) => at === name)
  return (
    <div ref={host} class="map" role="group" aria-label="Components">
      <svg aria-hidden="true">
        {lines.map(({ from, to }) => {
          const [start, end] = [places.value[from], places.value[to]]
          if (!start || !end) return null
          const path = linePath(start, end)
          const stop = firstAt(to)
          return (
            <g key={`${from} ${to}`}>
              <path d={path} class="line" />
              {stop && <path key={played?.id} d={path} class="pulse" pathLength={1} style={{ animationDelay: delayOf(stop) }} />}
            </g>
          )
        })}
      </svg>
      {components.map((name) => {
        const { title, main, rows, isBusy } = facts[name]
        const stops = (played?.stops ?? []).filter(({ at }) => at === name)
        return (
          <article key={name} data-component={name} class={isBusy ? 'busy' : ''} aria-label={title}>
            {stops.map((stop, index) => (
              <i key={`${played?.id} ${index}`} class="glow" style={{ animationDelay: delayOf(stop) }} />
            ))}
            <h2>{title}</h2>
            <p class="main">{main}</p>
            <dl>
              {rows.map(([label, value]) => (
                <div key={label}>
                  <dt>{label}</dt>
                  <dd>{value}</dd>
                </div>
              ))}
            </dl>
          </article>
        )
      })}
    </div>
  )
}
