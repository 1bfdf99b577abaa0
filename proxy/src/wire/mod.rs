//! The frontend/backend protocol as bytes: frames, views of messages, writers of replies. No sockets.
