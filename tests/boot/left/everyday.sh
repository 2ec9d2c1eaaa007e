# What a person does with git every day, in the box.
set -e
cd /home/me/page
export HOME=/tmp GIT_AUTHOR_NAME=me GIT_AUTHOR_EMAIL=me@example.org GIT_COMMITTER_NAME=me GIT_COMMITTER_EMAIL=me@example.org
git -c protocol.file.allow=always submodule --quiet update --init
test -L lib/link && cat lib/link
git config -f .git/modules/lib/config core.symlinks || echo 'links as before'
git switch -qc work
echo two >README && git commit -qam two
echo three >README && git stash -q && git stash pop -q && git checkout -q README
git switch -q main && git merge -q --no-edit work
ln -s README linked && git add linked && git commit -qm linked
git switch -q work && git rebase -q main && git switch -q main
git worktree add -q wt work && git worktree remove wt
git tag v1 && git gc -q && git fsck --strict --no-dangling
git log --oneline | wc -l
git status --porcelain
find .git ! -type f ! -type d
