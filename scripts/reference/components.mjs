/** A page for each component that runs alone: the flags that its `--help` lists, by their headings. The texts stand in the option groups of src/main. */
import { runApiServer } from '../../src/main/layouts/apiserver.ts'
import { runControllerManagerProcess } from '../../src/main/layouts/controllerManager.ts'
import { runCsiController } from '../../src/main/layouts/csiController.ts'
import { runCsiHostPath } from '../../src/main/layouts/csiHostPath/csiHostPath.ts'
import { runEtcdServer } from '../../src/main/layouts/etcdServer.ts'
import { runJoin } from '../../src/main/layouts/join.ts'
import { runKubeletProcess } from '../../src/main/layouts/kubelet.ts'
import { runSchedulerProcess } from '../../src/main/layouts/scheduler.ts'
import { asCell, asText, generated, tableOf } from './markdownText.mjs'

/** Command → how it runs, and the page that describes it. */
const components = {
  apiserver: { run: runApiServer, about: '[One component alone](../command-line.md#one-component-alone)' },
  'controller-manager': { run: runControllerManagerProcess, about: '[One component alone](../command-line.md#one-component-alone)' },
  scheduler: { run: runSchedulerProcess, about: '[The scheduler](../scheduler.md)' },
  kubelet: { run: runKubeletProcess, about: '[One component alone](../command-line.md#one-component-alone)' },
  join: { run: runJoin, about: '[Other machines](../high-availability.md#other-machines)' },
  'etcd serve': { run: runEtcdServer, about: '[The store](../store.md)' },
  'csi-controller': { run: runCsiController, about: '[CSI drivers](../csi.md#the-controllers-of-a-driver)' },
  'csi-hostpath': { run: runCsiHostPath, about: '[CSI drivers](../csi.md#the-host-path-driver)' },
}

/** @returns file → content */
export async function componentPages() {
  const pages = {}
  for (const [command, { run, about }] of Object.entries(components)) {
    pages[`reference/${command.replace(' ', '-')}.md`] = pageOf(command, about, await helpOf(run))
  }
  return pages
}

/** Components print their help and return. */
async function helpOf(run) {
  const { write } = process.stdout
  let text = ''
  process.stdout.write = (chunk) => {
    text += chunk
    return true
  }
  try {
    await run(['--help'], new AbortController().signal)
  } finally {
    process.stdout.write = write
  }
  return text
}

function pageOf(command, about, help) {
  const [intro = '', ...groups] = help.split(/^(?=.* flags:\n)/m)
  const [sentence = '', usage = ''] = intro.split(/\nUsage:\n/)
  const head = `# skiff ${command}\n\n${asText(sentence.trim())}\n\n${generated} ${about} describes it.`
  const blocks = usage.trim() === '' ? [] : [`\`\`\`text\n${usage.replace(/^ {2}/gm, '').trimEnd()}\n\`\`\``]
  return `${[head, ...blocks, ...groups.map(groupOf)].join('\n\n')}\n`
}

/** `      --name type` and, in the next line, its text. */
function groupOf(text) {
  const [heading = '', ...lines] = text.trimEnd().split('\n')
  const rows = lines
    .join('\n')
    .split(/^ {6}(?=--)/m)
    .slice(1)
    .map((row) => {
      const [flag = '', ...about] = row.trimEnd().split('\n')
      return [`\`${flag.trim()}\``, asCell(about.join(' ').trim())]
    })
  return `## ${heading.replace(/ flags:$/, '')}\n\n${tableOf(['flag', ''], rows)}`
}
