/** A shell in a container (L4). */
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { execQuery } from '../../../model/execChannels.ts'
import { objectPath } from '../../../model/places.ts'
import { openSocket } from '../../api.ts'
import { openTerminal } from '../../lazy/terminal.ts'
import { Button, Empty } from '../../parts/basics.tsx'
import { isStill } from '../../session.ts'
import { set } from '../../state.ts'
import { runningContainers, startDebugContainer } from './debugContainer.ts'
import type { TabProps } from './types.ts'

const shells = ['sh', 'bash', '/bin/busybox sh']

export function ShellTab(props: TabProps) {
  return isStill() ? <Empty title="A shell needs the running cluster: this is a bundle" /> : <Shell {...props} />
}

function Shell(props: TabProps) {
  const { kind, name, object } = props
  const host = useRef<HTMLDivElement>(null)
  const containers = runningContainers(object)
  const [container, command, turn, ended] = [useSignal(containers[0] ?? ''), useSignal(shells[0] ?? ''), useSignal(0), useSignal('')]
  useEffect(() => {
    if (!host.current) return
    ended.value = ''
    const query = execQuery(container.value, command.value.split(' '), ['stdin', 'stdout', 'tty'])
    const path = `${objectPath(kind, name, 'exec')}?${query}`
    const shell = openTerminal(
      host.current,
      (protocols) => openSocket(path, protocols),
      (text) => {
        ended.value = text
      },
    )
    return () => shell.close()
  }, [container.value, command.value, turn.value])
  return (
    <section class="shell" aria-label="Shell">
      <div class="bar">
        <select aria-label="Container" value={container.value} onChange={({ currentTarget }) => set(container, currentTarget.value)}>
          {containers.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
        <select aria-label="Program" value={command.value} onChange={({ currentTarget }) => set(command, currentTarget.value)}>
          {shells.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
        <Button onClick={() => void startDebugContainer(props, container.value)}>Debug container…</Button>
        {ended.value !== '' && (
          <>
            <span class="warning" role="status">
              {ended.value}
            </span>
            <Button onClick={() => void turn.value++}>Connect again</Button>
          </>
        )}
      </div>
      <div ref={host} class="terminal" />
    </section>
  )
}
