/** Files of a container (L4): one is fetched, or put there, through commands in the container, as `kubectl cp` does it. */
import { useSignal } from '@preact/signals'
import { execQuery } from '../../../model/execChannels.ts'
import { objectPath } from '../../../model/places.ts'
import { messageOf, openSocket } from '../../api.ts'
import { runCommand } from '../../lazy/execStreams.ts'
import { Button, Empty } from '../../parts/basics.tsx'
import { isStill } from '../../session.ts'
import { say, set } from '../../state.ts'
import { runningContainers } from './debugContainer.ts'
import type { TabProps } from './types.ts'

const mostBytes = 256 * 2 ** 20

export function FilesTab(props: TabProps) {
  return isStill() ? <Empty title="Files need the running cluster: this is a bundle" /> : <Files {...props} />
}

function Files({ kind, name, object }: TabProps) {
  const containers = runningContainers(object)
  const [container, path, bytes] = [useSignal(containers[0] ?? ''), useSignal('/etc/hostname'), useSignal<number | undefined>(undefined)]
  const run = async (command: readonly string[], input?: Blob) => {
    const query = execQuery(container.value, command, input ? ['stdin', 'stdout', 'stderr'] : ['stdout', 'stderr'])
    bytes.value = 0
    const open = (protocols: readonly string[]) => openSocket(`${objectPath(kind, name, 'exec')}?${query}`, protocols)
    return runCommand({ open, mostBytes, onProgress: (sofar) => set(bytes, sofar), ...(input ? { input } : {}) }).finally(() => set(bytes, undefined))
  }
  const act = (what: string, work: () => Promise<string>) =>
    void work().then(
      (text) => say('good', text),
      (error: unknown) => say('bad', `${what}: ${messageOf(error)}`),
    )
  const download = async () => {
    const file = await run(['cat', path.value])
    save(file, path.value.split('/').at(-1) || 'file')
    return `${path.value}: ${file.size} bytes are saved`
  }
  const upload = async (file: File) => {
    const to = path.value.endsWith('/') ? `${path.value}${file.name}` : path.value
    await run(['sh', '-c', 'cat > "$0"', to], file)
    return `${to}: ${file.size} bytes are written`
  }
  return (
    <section class="panel files" aria-label="Files">
      <form
        class="bar"
        onSubmit={(event) => {
          event.preventDefault()
          act('Download', download)
        }}
      >
        <select aria-label="Container" value={container.value} onChange={({ currentTarget }) => set(container, currentTarget.value)}>
          {containers.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
        <input aria-label="Path in the container" required value={path.value} onInput={({ currentTarget }) => set(path, currentTarget.value)} />
        <button type="submit" class="main" disabled={bytes.value !== undefined}>
          Download
        </button>
        <UploadButton isDisabled={bytes.value !== undefined} onFile={(file) => act('Upload', () => upload(file))} />
      </form>
      <p class="quiet" role="status">
        {bytes.value === undefined ? 'An upload replaces the file at the path; below a path that ends with a slash it keeps its name.' : `${bytes.value} bytes`}
      </p>
    </section>
  )
}

function UploadButton({ isDisabled, onFile }: { readonly isDisabled: boolean; readonly onFile: (file: File) => void }) {
  return (
    <>
      <input
        type="file"
        class="hidden"
        tabIndex={-1}
        aria-label="File to upload"
        onChange={({ currentTarget }) => {
          const [file] = currentTarget.files ?? []
          if (file) onFile(file)
          currentTarget.value = ''
        }}
      />
      <Button disabled={isDisabled} onClick={({ currentTarget }) => (currentTarget.previousElementSibling as HTMLInputElement).click()}>
        Upload…
      </Button>
    </>
  )
}

/** The browser asks where, or puts it where its user keeps downloads. */
function save(file: Blob, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(file)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}
