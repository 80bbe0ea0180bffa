/** The clock of a cluster under virtual time (L4, X3): it stands still, passes at a speed, or advances by a step, with the rights of the user. */
import { useSignal } from '@preact/signals'
import { type ClockChange, type ClockState, clockPath } from '#api/debug/clock'
import { isMoving, motionText, speeds, steps, timeText } from '../../../model/clusterClock.ts'
import { messageOf, write } from '../../api.ts'
import { useKeys } from '../../keys.ts'
import { Button } from '../../parts/basics.tsx'
import { clusterClock, say } from '../../state.ts'

const minute = 60_000

async function change(body: ClockChange): Promise<void> {
  try {
    clusterClock.value = (await write<ClockState>('POST', clockPath, body)).body
  } catch (error) {
    say('bad', `Clock: ${messageOf(error)}`)
  }
}

export function ClockPanel({ clock }: { readonly clock: ClockState }) {
  const speed = useSignal<number>(60)
  const moves = isMoving(clock)
  const toggle = () => void change({ speed: moves ? 0 : speed.value })
  const choose = (chosen: number) => {
    speed.value = chosen
    if (clock.speed > 0) void change({ speed: chosen })
  }
  useKeys([
    { key: 'p', text: 'stop the clock of the cluster, or let it run', act: toggle },
    { key: '.', text: 'let a minute pass in the cluster', act: () => void change({ stepMs: minute }) },
  ])
  return (
    <section class="panel" aria-label="Clock">
      <h2>Clock</h2>
      <p role="status">
        <strong>{timeText(clock)}</strong> <span class={clock.failure === undefined ? 'quiet' : 'warning'}>{motionText(clock)}</span>
      </p>
      <div class="bar">
        <Button class="main" title={moves ? 'Stop (p)' : 'Run (p)'} onClick={toggle}>
          {moves ? 'Stop' : 'Run'}
        </Button>
        <select aria-label="Speed" value={speed.value} onChange={({ currentTarget }) => choose(Number(currentTarget.value))}>
          {speeds.map((one) => (
            <option key={one} value={one}>
              {one === 1 ? 'as on the machine' : `${one} times as fast`}
            </option>
          ))}
        </select>
        <span class="quiet">or let pass once</span>
        {steps.map(({ title, ms }) => (
          <Button key={title} onClick={() => void change({ stepMs: ms })}>
            {title}
          </Button>
        ))}
      </div>
    </section>
  )
}
