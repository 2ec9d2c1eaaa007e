# Makes a project with a submodule that was registered and not fetched, its remote repository, and what a box must not reach.
# $1 is the directory of the user: `page` is the project, `outside` the rest.
set -eu
cd "$1"
mkdir -p outside/ran outside/home outside/dir
export HOME="$1/outside/home" GIT_CONFIG_NOSYSTEM=1
git config --global user.name me && git config --global user.email me@example.org
git config --global init.defaultBranch main
echo 'echo bashrc' >outside/home/.bashrc
echo canary >outside/file
echo canary >outside/dir/x
git init -q outside/secret && (cd outside/secret && echo secret >file && git add . && git commit -qm secret)
git init -q outside/lib && (cd outside/lib && echo text >file && ln -s file link && git add . && git commit -qm lib)
git init -q page && cd page
git clone -q --bare ../outside/lib .lib.git
mkdir docs && echo docs >docs/x && echo one >README && echo 'all:' >Makefile
printf '[submodule "lib"]\n\tpath = lib\n\turl = /home/me/page/.lib.git\n' >.gitmodules
echo .lib.git >.gitignore
git add . && git update-index --add --cacheinfo "160000,$(git -C ../outside/lib rev-parse HEAD),lib"
git commit -qm one
git config submodule.lib.url /home/me/page/.lib.git
git clone -q --bare . ../outside/upstream.git
git remote add origin "$1/outside/upstream.git"
git switch -qc other && echo other >docs/x && git commit -qam other && git switch -q main
