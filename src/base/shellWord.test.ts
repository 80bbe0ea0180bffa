/** Words of commands that a shell reads back as they were. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { shellWord } from './shellWord.ts'

test('X7 a shell reads a word back as it was, whatever is in it', () => {
  for (const text of ['web', 'system:serviceaccount:a:b', '--user=a b', '', '$(id);`id`', `it's "quoted"`, 'a|b>c&d\\', 'line\nbreak', '*', '~'])
    assert.equal(execFileSync('sh', ['-c', `printf %s ${shellWord(text)}`], { encoding: 'utf8' }), text)
  assert.equal(shellWord('--user=system:node:a'), '--user=system:node:a')
})
